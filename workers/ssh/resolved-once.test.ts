import dns from 'node:dns';
import dnsPromises from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { HostRow } from '../../shared/database/schema.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';
import { scanHostKeys } from './scan-host-keys.ts';

const patient = new AbortController().signal;
const real = { lookup: dns.lookup, promised: dnsPromises.lookup };
const ended: (() => void)[] = [];

afterEach(() => {
  for (const end of ended.splice(0)) end();
});

type Callback = (...args: unknown[]) => void;

/** A name server that answers each question with the next addresses, and the last ones from then on. */
function rebind(answers: string[]): { asked(): number } {
  let asked = 0;
  const answer = (all = false) => {
    const told = (answers[Math.min(asked++, answers.length - 1)] ?? '').split(' ');
    const found = told.map(address => ({ address, family: 4 }));
    return all ? found : found[0];
  };
  const given = real.lookup as unknown as (...args: unknown[]) => void;
  const lookup = (name: string, options: { all?: boolean }, callback: Callback) => {
    if (name !== 'rebound.example') return given(name, options, callback);
    const found = answer(options.all);
    process.nextTick(() =>
      Array.isArray(found) ? callback(null, found) : callback(null, found?.address, found?.family),
    );
  };
  dns.lookup = lookup as unknown as typeof dns.lookup;
  dnsPromises.lookup = (async (_: string, { all }: { all?: boolean }) =>
    answer(all)) as unknown as typeof dnsPromises.lookup;
  syncBuiltinESMExports();
  ended.push(() => {
    dns.lookup = real.lookup;
    dnsPromises.lookup = real.promised;
    syncBuiltinESMExports();
  });
  return { asked: () => asked };
}

/** Listens on one port of these addresses, and hangs up. `met` tells which addresses were connected to. */
async function listen(addresses: string[]): Promise<{ port: number; met: string[] }> {
  const met: string[] = [];
  let port = 0;
  for (const host of addresses) {
    const server = createServer(socket => {
      met.push(host);
      socket.on('error', () => {}).end();
    });
    ended.push(() => server.close());
    await new Promise<void>((settle, reject) => {
      server.once('error', reject);
      server.listen(port, host, settle);
    });
    ({ port } = server.address() as AddressInfo);
  }
  return { port, met };
}

const target = (port: number, granted: boolean) => ({
  hops: [
    {
      name: 'host',
      address: 'rebound.example',
      port,
      keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvYQZ8pUyVQ3cKk4Gd3cSg8QzTt9Ks6oG0n0w1mV7qX'],
      private: granted,
    } as HostRow,
  ] as Hops,
  username: 'me',
  credential: { password: 'x' },
  limits: { connectMs: 300, loginMs: 300 },
});

test('the address that was checked is the one that is connected to, whatever the name says next', async () => {
  const { port, met } = await listen(['127.0.0.1', '127.0.0.2']);
  const server = rebind(['127.0.0.1', '127.0.0.2']);
  await expect(connectHere(target(port, true), patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  expect([met, server.asked()]).toEqual([['127.0.0.1'], 1]);
});

test('of several addresses the next is tried where one refuses, but no inner one unless that is granted', async () => {
  const { port, met } = await listen(['127.0.0.2', '127.0.0.3']);
  rebind(['127.0.0.1 127.0.0.2 127.0.0.3', '192.0.2.1 127.0.0.2', '127.0.0.1 127.0.0.2']);
  const refused = { code: 'remote_connection_failed' };
  await expect(connectHere(target(port, true), patient)).rejects.toMatchObject(refused);
  expect(met).toEqual(['127.0.0.2']);
  await expect(connectHere(target(port, false), patient)).rejects.toMatchObject(refused);
  await expect(connectHere(target(port, false), patient)).rejects.toMatchObject({
    code: 'host_not_allowed',
  });
  expect(met).toEqual(['127.0.0.2']);
});

test('of several addresses that are dead each is told', async () => {
  const { port } = await listen(['127.0.0.3']);
  rebind(['127.0.0.1 127.0.0.2']);
  await expect(connectHere(target(port, true), patient)).rejects.toThrow(
    new RegExp(`ECONNREFUSED 127.0.0.1:${port}; .*ECONNREFUSED 127.0.0.2:${port}`),
  );
});

test('a name that turns to an inner address once it was checked reaches nothing there', async () => {
  const { port, met } = await listen(['127.0.0.1']);
  // TEST-NET-1 (RFC 5737): nobody's.
  const server = rebind(['192.0.2.1', '127.0.0.1']);
  await expect(connectHere(target(port, false), patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  expect([met, server.asked()]).toEqual([[], 1]);
  await expect(connectHere(target(port, false), patient)).rejects.toMatchObject({
    code: 'host_not_allowed',
  });
  expect([met, server.asked()]).toEqual([[], 2]);
});

test('the scan of a host that is trusted on sight asks for its name once, for all types of key', async () => {
  const { port, met } = await listen(['127.0.0.1', '127.0.0.2']);
  const server = rebind(['127.0.0.1', '127.0.0.2']);
  const [host] = target(port, true).hops;
  await expect(scanHostKeys(host, patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  expect([new Set(met), server.asked()]).toEqual([new Set(['127.0.0.1']), 1]);
});
