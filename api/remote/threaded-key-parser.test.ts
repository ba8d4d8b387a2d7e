import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import ssh2, { type ParsedKey } from 'ssh2';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { ThreadedKeyParser } from './threaded-key-parser.ts';

const directory = makeTempDir('keys');
afterAll(() => directory.remove());

let made = 0;
function makeKey(...options: string[]): string {
  const path = join(directory.path, `key${++made}`);
  execFileSync('ssh-keygen', ['-q', '-N', 'secret', '-f', path, ...options]);
  return readFileSync(path, 'utf8');
}

/** The key with another number of KDF rounds. */
function withRounds(key: string, rounds: number): string {
  const [head = '', ...lines] = key.trim().split('\n');
  const foot = lines.pop();
  const bytes = Buffer.from(lines.join(''), 'base64');
  // After the magic come cipher, kdf, and the kdf's options, which end with the rounds.
  let at = 15;
  for (let i = 0; i < 3; i++) at += 4 + bytes.readUInt32BE(at);
  bytes.writeUInt32BE(rounds, at - 4);
  return [head, bytes.toString('base64'), foot].join('\n');
}

const parse = (key: string, passphrase?: string) =>
  ssh2.utils.parseKey(key, passphrase) as ParsedKey;

/** As `openssl genpkey` writes it. */
function pkcs8Of({ privateKey }: { privateKey: KeyObject }, passphrase?: string): string {
  const cipher = passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase };
  return privateKey.export({ type: 'pkcs8', format: 'pem', ...cipher }).toString();
}

describeUnless(missingPrograms('ssh'), 'private keys', () => {
  test('decrypts an encrypted key of each type', {
    timeout: 60_000,
  }, async () => {
    const keys = new ThreadedKeyParser();
    const kinds = [
      ['ed25519'],
      ['ecdsa'],
      ['rsa', '-b', '2048'],
      ['rsa', '-b', '2048', '-m', 'PEM'],
    ];
    for (const kind of kinds) {
      const key = makeKey('-a', '1', '-t', ...kind);
      const opened = await keys.parse('u', key, 'secret');
      if (!('key' in opened)) throw new Error(opened.problem);
      const signature = parse(opened.key).sign('x') as Buffer;
      expect([kind, parse(key, 'secret').verify('x', signature)]).toEqual([kind, true]);
      expect(await keys.parse('u', key, 'wrong')).toEqual({
        problem: 'cannot be opened with this passphrase',
      });
      expect(await keys.parse('u', key, undefined)).toEqual({
        problem: 'cannot be opened with this passphrase',
      });
    }
  });

  test('refuses a key that takes too long, without delaying others', async () => {
    const keys = new ThreadedKeyParser(300);
    const rounds = withRounds(makeKey('-a', '1', '-t', 'ed25519'), 0xffffffff);
    const headers = `-----BEGIN RSA PRIVATE KEY-----\n${'a:b\n'.repeat(16_000)}`;
    for (const [key, passphrase] of [[rounds, 'secret'], [headers]] as [string, string?][]) {
      let isOpen = false;
      const opening = keys.parse('u', key, passphrase).then(opened => {
        isOpen = true;
        return opened;
      });
      let turns = 0;
      for (; !isOpen; turns++) await setImmediate();
      expect(await opening).toEqual({ problem: expect.stringMatching(/^takes longer than 0.3 s/) });
      expect(turns).toBeGreaterThan(100);
    }
  });

  test('refuses the 33rd key of a user that waits, and none of another user', async () => {
    const keys = new ThreadedKeyParser(1);
    const rounds = withRounds(makeKey('-a', '1', '-t', 'ed25519'), 0xffffffff);
    const parseFor = (user: string) => keys.parse(user, rounds, 'secret');
    const held = Array.from({ length: 32 }, () => parseFor('u'));
    await expect(parseFor('u')).rejects.toMatchObject({ code: 'too_many_requests' });
    const problem = { problem: expect.stringMatching(/^takes longer/) };
    expect(await parseFor('other')).toEqual(problem);
    await Promise.all(held);
    expect(await parseFor('u')).toEqual(problem);
  });

  test('takes keys in PKCS #8, as openssl writes them', async () => {
    const keys = new ThreadedKeyParser();
    const pairs = [
      generateKeyPairSync('rsa', { modulusLength: 2_048 }),
      generateKeyPairSync('ec', { namedCurve: 'prime256v1' }),
      generateKeyPairSync('ec', { namedCurve: 'secp384r1' }),
      generateKeyPairSync('ec', { namedCurve: 'secp521r1' }),
      generateKeyPairSync('ed25519'),
    ];
    for (const pair of pairs) {
      const [plain, encrypted] = [pkcs8Of(pair), pkcs8Of(pair, 'secret')];
      expect([plain, encrypted]).toEqual([
        expect.stringMatching(/^-----BEGIN PRIVATE KEY-----/),
        expect.stringMatching(/^-----BEGIN ENCRYPTED PRIVATE KEY-----/),
      ]);
      for (const [text, passphrase] of [
        [plain, undefined],
        [plain, 'needless'],
        [plain.replaceAll('\n', '\r\n'), undefined],
        [encrypted, 'secret'],
      ] as [string, string?][]) {
        const opened = await keys.parse('u', text, passphrase);
        if (!('key' in opened)) throw new Error(opened.problem);
        // OpenSSH reads them, and finds the same public key.
        const path = join(directory.path, `key${++made}`);
        writeFileSync(path, opened.key, { mode: 0o600 });
        const line = execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' });
        expect(parse(opened.key).getPublicSSH().toString('base64')).toBe(line.split(/\s/)[1]);
        const jwk = createPublicKey(parse(opened.key).getPublicPEM()).export({ format: 'jwk' });
        expect(jwk).toEqual(pair.publicKey.export({ format: 'jwk' }));
        const signature = parse(opened.key).sign('x') as Buffer;
        expect(parse(line).verify('x', signature)).toBe(true);
      }
      for (const passphrase of ['wrong', '', undefined])
        expect(await keys.parse('u', encrypted, passphrase)).toEqual({
          problem: 'cannot be opened with this passphrase',
        });
    }
  });

  test('names what of PKCS #8 it does not take', async () => {
    const keys = new ThreadedKeyParser();
    const type = { problem: expect.stringMatching(/^must be an RSA, Ed25519 or ECDSA key/) };
    for (const pair of [
      generateKeyPairSync('x25519'),
      generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
    ])
      expect(await keys.parse('u', pkcs8Of(pair), undefined)).toEqual(type);
    const [head, , foot] = pkcs8Of(generateKeyPairSync('ed25519')).split('\n');
    for (const body of ['', 'AAAA', 'MIGbMFcG', 'MIAwgDCA'])
      for (const encrypted of ['', 'ENCRYPTED '])
        expect(
          await keys.parse(
            'u',
            [head, body, foot].join('\n').replaceAll('PRIVATE', `${encrypted}PRIVATE`),
            'secret',
          ),
        ).toEqual({ problem: 'must be a private key in OpenSSH or PEM form' });
  });

  test('refuses a PKCS #8 key of too many rounds at once', async () => {
    const keys = new ThreadedKeyParser();
    const text = pkcs8Of(generateKeyPairSync('ed25519'), 'secret');
    const [head, ...lines] = text.trim().split('\n');
    const foot = lines.pop();
    // 2^31 - 1 rounds for 2,048, which take two bytes more, and so do the sequences around them.
    const hex = Buffer.from(lines.join(''), 'base64')
      .toString('hex')
      .replace('02020800', '02047fffffff')
      .replace('30819b3057', '30819d3059')
      .replace('304a3029', '304c302b')
      .replace('301c', '301e');
    const many = [head, Buffer.from(hex, 'hex').toString('base64'), foot].join('\n');
    expect(await keys.parse('u', many, 'secret')).toEqual({
      problem: expect.stringMatching(/^takes too long to open; openssl pkcs8/),
    });
  });

  test('refuses what is no private key', async () => {
    const keys = new ThreadedKeyParser();
    const problem = 'must be a private key in OpenSSH or PEM form';
    for (const text of [
      '',
      'nonsense',
      'ssh-ed25519 AAAA',
      parse(makeKey('-a', '1', '-t', 'rsa'), 'secret').getPublicPEM(),
    ])
      expect([text, await keys.parse('u', text, undefined)]).toEqual([text, { problem }]);
  });
});
