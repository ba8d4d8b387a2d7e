import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { makeKeyPair } from '../../servers/key-pair.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { missingMemory, watchMemory } from '../harness/stacks/memory.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const MIB = 1 << 20;
/** The limit, and what the kernel's buffers of both ends take of what nobody reads. */
const TAKEN_BYTES = 16 * MIB;
/** Bytes that a worker may need for it: the memory of a process at work varies by as much. */
const WORKER_BYTES = 64 * MIB;

/** SSH_MSG_IGNORE with 32 KiB (RFC 4253, 6 and 11.2). */
const IGNORE = packet(Buffer.concat([Buffer.from([2]), uint32(32_768), Buffer.alloc(32_768, 'x')]));

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function packet(payload: Buffer): Buffer {
  const padding = 16 - ((payload.length + 5 + 8) % 8);
  const length = uint32(payload.length + padding + 1);
  return Buffer.concat([length, Buffer.from([padding]), payload, Buffer.alloc(padding)]);
}

/** SSH_MSG_KEXINIT of a server that speaks what is current (RFC 4253, 7.1). */
function keyExchange(hostKeyType: string): Buffer {
  const list = (names: string) => Buffer.concat([uint32(names.length), Buffer.from(names)]);
  const ciphers = list('aes128-gcm@openssh.com');
  const macs = list('hmac-sha2-256');
  const none = list('none');
  return packet(
    Buffer.concat([
      ...[Buffer.from([20]), Buffer.alloc(16, 1), list('curve25519-sha256'), list(hostKeyType)],
      ...[ciphers, ciphers, macs, macs, none, none, list(''), list(''), Buffer.alloc(5)],
    ]),
  );
}

/** The types that ask the host for its certificate, too. */
const KEY_TYPES = 'ssh-ed25519,ssh-ed25519-cert-v01@openssh.com';

describeStack(missingMemory(), 'a host that floods before the login', form => {
  const { stack, client } = useStack(form);
  const ended: (() => void)[] = [];
  afterEach(() => {
    for (const end of ended.splice(0)) end();
  });

  /** A TCP server that says `first` and then `again` without end; what was taken of it over all connections. */
  const flood = async (first: Buffer, again: Buffer) => {
    const sockets = new Set<Socket>();
    const server = createServer(socket => {
      sockets.add(socket.on('error', () => {}));
      const fill = () => {
        while (!socket.destroyed && socket.write(again));
      };
      socket.on('drain', fill).write(first);
      fill();
    });
    ended.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const taken = () =>
      [...sockets].reduce((sum, one) => sum + one.bytesWritten - one.writableLength, 0);
    return { port: (server.address() as AddressInfo).port, taken, sockets };
  };
  const BANNER = Buffer.from('SSH-2.0-OpenSSH_9.9\r\n');
  const key = makeKeyPair().public;
  const send = (path: string, body: object) =>
    client.fetch(path, { method: 'POST', body: JSON.stringify(body) });

  test.each([
    [
      'lines before its version',
      Buffer.alloc(0),
      Buffer.from(`${'x'.repeat(200)}\r\n`.repeat(100)),
    ],
    ['messages before the key exchange', BANNER, IGNORE],
    ['messages in the key exchange', Buffer.concat([BANNER, keyExchange(KEY_TYPES)]), IGNORE],
  ])('%s: a worker takes 1 MB at most', async (what, first, again) => {
    const { port, taken, sockets } = await flood(first, again);
    const memory = watchMemory(stack);
    const name = what.replaceAll(' ', '-');
    const at = { address: '127.0.0.1', port, private: true };
    const open = async (hostname: string, pin: string) => {
      await client.post('/api/hosts', { name: hostname, ...at, keys: [pin], agent: false });
      return send('/api/remotes', { hostname, username: 'me', password: 'x' });
    };
    const opened = await open(name, key);
    const certified = await open(`${name}-3`, `@cert-authority * ${key}`);
    const scanned = await send('/api/hosts', { name: `${name}-2`, ...at, trust: 'now' });
    expect(sockets.size).toBeGreaterThanOrEqual(3);
    const large = Object.entries(memory.growth()).filter(([, bytes]) => bytes >= WORKER_BYTES);
    expect(large).toEqual([]);
    expect(taken() / sockets.size).toBeLessThan(TAKEN_BYTES);
    for (const answer of [opened, certified, scanned]) {
      const { detail } = await expectProblem(answer, 500, 'remote_connection_failed');
      expect(detail).toMatch(/more than 1 MB before the login/);
    }
  });
});
