import { PassThrough } from 'node:stream';
import type ssh2 from 'ssh2';
import { expect, test } from 'vitest';
import { awaitChannel } from './await-channel.ts';
import { signByCertificate } from './certified-key.ts';
import type { Transport } from './limit-login.ts';
import { refuseViolations } from './refuse-violations.ts';
import { toExecChannel } from './ssh-channel.ts';

/** What an ssh2 without its private parts would be. */
const client = {} as ssh2.Client;

test('a channel that cannot send a signal says so', () => {
  const bare = Object.assign(new PassThrough(), { stderr: new PassThrough() });
  const channel = toExecChannel(bare as unknown as ssh2.ClientChannel, () => {});
  expect(() => channel.signal('KILL')).toThrow('a channel of ssh2 has no _client');
  const outgoing = { id: 0, state: 'eof' };
  Object.assign(bare, { _client: { _protocol: {} }, outgoing, signal() {} });
  expect(() => channel.signal('KILL')).toThrow('the protocol of ssh2 has no signal');
});

test('bytes that cannot be counted are not counted as none', async () => {
  const opening = awaitChannel(client, { sent: true, closeListeners: new Set() }, () => {});
  await expect(opening).rejects.toThrow('a client of ssh2 has no _sock');
});

test('a connection whose messages cannot be checked is not made', () => {
  expect(() => refuseViolations(client, {} as Transport)).toThrow(
    'a client of ssh2 has no _protocol',
  );
});

test('a client that signs in another way says so', () => {
  expect(() => signByCertificate(client)).toThrow('the protocol of ssh2 has no authPK');
});
