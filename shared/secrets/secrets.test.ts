import { expect, test } from 'vitest';
import { generateSealKeys, hmac, seal, unseal } from './secrets.ts';

const context = { sid: 's1', owner: 'alice', hostname: 'h' };
const secret = { destination: 'there', secret: { privateKey: '-----BEGIN…', passphrase: 'ä\n\0' } };

test('a sealed credential opens only for its session, user and host', async () => {
  const { publicKey, privateKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  expect(await unseal(privateKey, context, sealed)).toEqual(secret);
  for (const other of [{ sid: 's2' }, { owner: 'bob' }, { hostname: 'i' }])
    await expect(unseal(privateKey, { ...context, ...other }, sealed)).rejects.toThrow();
  // No two contexts look alike when they are put together.
  const shifted = { sid: 's1"', owner: 'alice', hostname: 'h' };
  await expect(unseal(privateKey, shifted, sealed)).rejects.toThrow();
});

test('variables of a session are no credential of it, and its credential is none of them', async () => {
  const { publicKey, privateKey } = await generateSealKeys();
  const ofEnv = { ...context, of: 'env' } as const;
  const [credential, env] = [
    await seal(publicKey, context, secret),
    await seal(publicKey, ofEnv, { destination: '', secret: { LANG: 'C' } }),
  ];
  expect((await unseal(privateKey, ofEnv, env)).secret).toEqual({ LANG: 'C' });
  await expect(unseal(privateKey, ofEnv, credential)).rejects.toThrow();
  await expect(unseal(privateKey, context, env)).rejects.toThrow();
});

test('detects any changed byte, and shows nothing of the secret', async () => {
  const { publicKey, privateKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  expect(sealed.toString('latin1')).not.toContain('BEGIN');
  for (const at of [
    0,
    ...Array.from({ length: sealed.length }, (_, n) => n).filter(n => n % 7 === 1),
  ]) {
    const broken = Buffer.from(sealed);
    broken[at] = (broken[at] ?? 0) ^ 1;
    await expect(unseal(privateKey, context, broken), `byte ${at}`).rejects.toThrow();
  }
  expect((await seal(publicKey, context, secret)).equals(sealed)).toBe(false);
});

test('what 0.1.0 sealed, which names no destination, is told apart from what is damaged', async () => {
  const { publicKey, privateKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  sealed[0] = 1;
  await expect(unseal(privateKey, context, sealed)).rejects.toMatchObject({
    code: 'remote_authentication_failed',
    message: expect.stringContaining('0.1.0 sealed them, without the destination'),
    hint: 'Open a new session.',
  });
});

test('old keys open old credentials until they are removed', async () => {
  const [old, current] = await Promise.all([generateSealKeys(), generateSealKeys()]);
  const before = await seal(old.publicKey, context, { destination: 'there', secret: 'old' });
  const after = await seal(current.publicKey, context, { destination: 'there', secret: 'new' });
  const both = `${current.privateKey}, ${old.privateKey}`;
  expect(await unseal(both, context, before)).toMatchObject({ secret: 'old' });
  expect(await unseal(both, context, after)).toMatchObject({ secret: 'new' });
  const id = old.privateKey.slice(0, 8);
  await expect(unseal(current.privateKey, context, before)).rejects.toMatchObject({
    code: 'remote_authentication_failed',
    message: expect.stringContaining(`SEAL_PRIVATE_KEYS has no key ${id} any more`),
    hint: 'Open a new session.',
  });
});

test('names a setting that is no key', async () => {
  await expect(seal('nonsense', context, secret)).rejects.toThrow('SEAL_PUBLIC_KEY must be');
  const { publicKey } = await generateSealKeys();
  const sealed = await seal(publicKey, context, secret);
  await expect(unseal('nonsense', context, sealed)).rejects.toThrow('SEAL_PRIVATE_KEYS must be');
});

test('an HMAC depends on the key and on the boundaries of its parts', () => {
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
