import { expect, test } from 'vitest';
import { generateSealKeys, hmac, seal, unseal } from './secrets.ts';

const context = { sid: 's1', owner: 'alice', hostname: 'h' };
const secret = { privateKey: '-----BEGIN…', passphrase: 'ä\n\0' };

test('what was sealed opens for the same session, user and host alone', async () => {
  const { publicKey, privateKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  expect(await unseal(privateKey, context, sealed)).toEqual(secret);
  for (const other of [{ sid: 's2' }, { owner: 'bob' }, { hostname: 'i' }])
    await expect(unseal(privateKey, { ...context, ...other }, sealed)).rejects.toThrow();
  // No two contexts look alike when they are put together.
  const shifted = { sid: 's1"', owner: 'alice', hostname: 'h' };
  await expect(unseal(privateKey, shifted, sealed)).rejects.toThrow();
});

test('a changed byte anywhere is noticed, and nothing of the secret can be seen', async () => {
  const { publicKey, privateKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  expect(sealed.toString('latin1')).not.toContain('BEGIN');
  for (let at = 1; at < sealed.length; at += 7) {
    const broken = Buffer.from(sealed);
    broken[at] = (broken[at] ?? 0) ^ 1;
    await expect(unseal(privateKey, context, broken), `byte ${at}`).rejects.toThrow();
  }
  expect((await seal(publicKey, context, secret)).equals(sealed)).toBe(false);
});

test('keys are rotated: old ones stay in the list until nothing sealed to them is left', async () => {
  const [old, current] = await Promise.all([generateSealKeys(), generateSealKeys()]);
  const before = await seal(old.publicKey, context, 'old');
  const after = await seal(current.publicKey, context, 'new');
  const both = `${current.privateKey}, ${old.privateKey}`;
  expect(await unseal(both, context, before)).toBe('old');
  expect(await unseal(both, context, after)).toBe('new');
  const id = old.privateKey.slice(0, 8);
  await expect(unseal(current.privateKey, context, before)).rejects.toMatchObject({
    code: 'remote_authentication_failed',
    message: expect.stringContaining(`SEAL_PRIVATE_KEYS has no key ${id} any more`),
    hint: 'Open a new session.',
  });
});

test('a setting that is no key is named', async () => {
  await expect(seal('nonsense', context, secret)).rejects.toThrow('SEAL_PUBLIC_KEY must be');
  const { publicKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  await expect(unseal('nonsense', context, sealed)).rejects.toThrow('SEAL_PRIVATE_KEYS must be');
});

test('an HMAC depends on the key and on where one part ends and the next begins', () => {
  const macs = [
    hmac('key', 'ab', 'c'),
    hmac('key', 'a', 'bc'),
    hmac('key', 'abc'),
    hmac('key', 'ab', 'c', ''),
    hmac('other', 'ab', 'c'),
    hmac('key', '1:a'),
    hmac('key', '', 'a'),
  ];
  expect(new Set(macs).size).toBe(macs.length);
  expect(hmac('key', 'ab', 'c')).toBe(macs[0]);
});
