import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { HostRow } from '../../shared/database/schema.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';

const ANY_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
const patient = new AbortController().signal;

/** A server that does with the connection what the test says. */
async function serve(onSocket: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}));
    onSocket(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const keys = [`@cert-authority * ${ANY_KEY}`];
  const host = { name: 'node', address: '127.0.0.1', port, keys, private: true } as HostRow;
  const hops = [host] as Hops;
  return { target: { hops, username: 'me', credential: { password: 'x' } }, sockets };
}

test.each([
  ['is silent', '', /did not answer/],
  ['speaks HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n', /did not answer/],
  ['speaks SSH 1', 'SSH-1.5-old\r\n', /speaks no SSH 2/],
  ['says a line without end', 'x'.repeat(10_000), /speaks no SSH/],
  ['sends a packet of 4 GiB', `SSH-2.0-x\r\n${'\xff'.repeat(8)}`, /a bad packet/],
  ['sends a packet of padding alone', 'SSH-2.0-x\r\n\0\0\0\x0c\x0b12345678901', /a bad packet/],
  ['cuts its key exchange off', 'SSH-2.0-x\r\n\0\0\0\x0c\x04\x142345671234', /./],
  ['hangs up', undefined, /closed the connection/],
])('a host that %s is not asked for ever', async (_, words, problem) => {
  const { target } = await serve(socket =>
    words === undefined ? socket.end() : socket.write(words, 'latin1'),
  );
  const limits = { connectMs: 10_000, loginMs: 300 };
  await expect(connectHere({ ...target, limits }, patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringMatching(problem),
  });
});

test('a host that hangs up before it shows its certificate may be asked again', async () => {
  const { target } = await serve(socket => socket.end());
  await expect(connectHere(target, patient)).rejects.toMatchObject({ cause: { isUnseen: true } });
});

test('an abort ends the wait for a certificate', async () => {
  const leaving = new AbortController();
  const { target } = await serve(() => leaving.abort(new Error('left')));
  await expect(connectHere(target, leaving.signal)).rejects.toThrow('left');
});

/** SSH_MSG_IGNORE (RFC 4253, 6 and 11.2), with 4 bytes of padding and a string of 32,754. */
const IGNORE = Buffer.alloc(32_768, 'x');
IGNORE.writeUInt32BE(32_764, 0);
IGNORE.writeUInt8(4, 4);
IGNORE.writeUInt8(2, 5);
IGNORE.writeUInt32BE(32_754, 6);

test.each([
  ['lines', '', Buffer.from(`${'x'.repeat(200)}\r\n`.repeat(100))],
  ['messages', 'SSH-2.0-endless\r\n', IGNORE],
])('of endless %s before the certificate 1 MB is taken', async (_, first, again) => {
  const { target, sockets } = await serve(socket => {
    const fill = () => {
      while (!socket.destroyed && socket.write(again));
    };
    socket.on('drain', fill).write(first);
    fill();
  });
  await expect(connectHere(target, patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining('more than 1 MB before the login'),
  });
  expect(sockets.size).toBe(1);
});
