import { randomBytes } from 'node:crypto';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../wait-for.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

describe('a TCP proxy', () => {
  const echo = createServer(socket => {
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  let proxy: TcpProxy;
  beforeAll(async () => {
    await new Promise<void>(settle => echo.listen(0, '127.0.0.1', settle));
    proxy = await startTcpProxy({ host: '127.0.0.1', port: (echo.address() as AddressInfo).port });
  });
  afterAll(async () => {
    await proxy?.stop();
    echo.close();
  });

  function open(): { socket: Socket; received: () => Buffer; closed: Promise<unknown> } {
    const socket = connect(proxy.port, proxy.host);
    const chunks: Buffer[] = [];
    socket.on('data', chunk => chunks.push(chunk)).on('error', () => {});
    const closed = new Promise(settle => socket.once('close', settle));
    return { socket, received: () => Buffer.concat(chunks), closed };
  }

  test('passes on every byte, and the end of a side', async () => {
    const bytes = randomBytes(5_000_000);
    const before = { ...proxy.bytes };
    const { socket, received, closed } = open();
    socket.end(bytes);
    await closed;
    expect(received().equals(bytes)).toBe(true);
    expect(proxy.bytes.up - before.up).toBe(bytes.length);
    expect(proxy.bytes.down - before.down).toBe(bytes.length);
    await waitFor(() => proxy.connections.open === 0, { what: 'the connection to be forgotten' });
  });

  test('cuts after a number of bytes', async () => {
    proxy.cutAfter('down', 1000);
    const { socket, received, closed } = open();
    socket.write(randomBytes(1_000_000));
    await closed;
    expect(received().length).toBeLessThanOrEqual(1000);
    expect(proxy.connections.open).toBe(0);
  });

  test('holds one direction or both back, and lets go', async () => {
    const { socket, received, closed } = open();
    socket.write('a');
    await waitFor(() => received().toString() === 'a', { what: 'the first echo' });
    proxy.blackhole('down');
    const { up } = proxy.bytes;
    socket.write('b');
    await waitFor(() => proxy.bytes.up === up + 1, { what: 'the way up to stay open' });
    proxy.blackhole();
    socket.write('c');
    const late = open();
    late.socket.write('d');
    await waitFor(() => proxy.connections.open === 2, { what: 'the new connection' });
    expect(proxy.bytes.up).toBe(up + 1);
    expect(received().toString()).toBe('a');
    proxy.heal();
    await waitFor(() => received().toString() === 'abc', { what: 'what was held back' });
    await waitFor(() => late.received().toString() === 'd', { what: 'the late echo' });
    socket.end();
    late.socket.end();
    await Promise.all([closed, late.closed]);
  });

  test('refuses and takes again', async () => {
    const first = open();
    await waitFor(() => proxy.connections.open === 1, { what: 'the connection' });
    proxy.refuse();
    await first.closed;
    const { refused } = proxy.connections;
    await open().closed;
    expect(proxy.connections.refused).toBe(refused + 1);
    proxy.heal();
    const { socket, received } = open();
    socket.write('x');
    await waitFor(() => received().toString() === 'x', { what: 'an echo' });
    socket.destroy();
  });

  test('leaves what is open silent for ever, and passes on what comes anew', async () => {
    const old = open();
    old.socket.write('a');
    await waitFor(() => old.received().toString() === 'a', { what: 'the first echo' });
    proxy.forget();
    const { up } = proxy.bytes;
    old.socket.write('b');
    const anew = open();
    anew.socket.write('c');
    await waitFor(() => anew.received().toString() === 'c', { what: 'the echo of the new one' });
    proxy.heal();
    anew.socket.write('d');
    await waitFor(() => anew.received().toString() === 'cd', { what: 'another echo' });
    expect(proxy.bytes.up - up).toBe(2);
    expect(old.received().toString()).toBe('a');
    expect(old.socket.destroyed).toBe(false);
    anew.socket.destroy();
    old.socket.destroy();
  });
});
