import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
