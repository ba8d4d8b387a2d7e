import ssh2 from 'ssh2';
import { expect, test } from 'vitest';
import { readConfig } from '../settings/config.ts';
import { CURRENT_ALGORITHMS, parseAlgorithms } from './algorithms.ts';

const ALL = Object.values(CURRENT_ALGORITHMS).flat();

test('the default is the current list, with nothing that breaks SHA-1 or CBC would open', () => {
  expect(readConfig({}).SSH_ALGORITHMS).toEqual(CURRENT_ALGORITHMS);
  expect(ALL.filter(name => /sha1|cbc|md5|arcfour|group1-|none/.test(name))).toEqual([]);
});

test('names are sorted by kind, and keep their order', () => {
  const text = 'hmac-sha1, aes128-cbc,diffie-hellman-group14-sha1,aes128-ctr';
  expect(parseAlgorithms(text)).toEqual({
    kex: ['diffie-hellman-group14-sha1'],
    cipher: ['aes128-cbc', 'aes128-ctr'],
    hmac: ['hmac-sha1'],
  });
});

test.each([
  ['aes128-ctr,hmac-sha2-256', /must name a key exchange, a cipher and a MAC/],
  ['curve25519-sha256,aes128-ctr,hmac-md5', /hmac-md5 is none of curve25519-sha256,/],
  ['curve25519-sha256,,aes128-ctr', /is none of/],
])('%s is refused', (text, problem) => {
  expect(() => readConfig({ SSH_ALGORITHMS: text })).toThrow(problem);
});

test('ssh2 has all that may be named', () => {
  const { problem } = parseAlgorithms('none') as { problem: string };
  const names = problem.replace('none is none of ', '').split(', ');
  expect(names.length).toBeGreaterThan(ALL.length);
  const found = parseAlgorithms(names.join(','));
  const client = new ssh2.Client();
  const algorithms = found as ssh2.Algorithms;
  client.on('error', () => {});
  expect(() =>
    client.connect({ host: '127.0.0.1', port: 1, username: 'x', algorithms }),
  ).not.toThrow();
  client.destroy();
});
