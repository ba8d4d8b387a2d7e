import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyBytes } from './keys.ts';
import { fitsPattern, fitsPatterns } from './name-patterns.ts';
import { authoritiesFor, isFor, keyLineIn, ownKeys, readPin } from './pins.ts';
import { wireString } from './wire.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl';
/** A key of 31 bytes, and one whose point is not on its curve. */
const SHORT = `ssh-ed25519 ${Buffer.concat(['ssh-ed25519', Buffer.alloc(31, 1)].map(wireString)).toString('base64')}`;
const OFF_CURVE = `ecdsa-sha2-nistp256 ${Buffer.concat(
  ['ecdsa-sha2-nistp256', 'nistp256', Buffer.alloc(65, 4)].map(wireString),
).toString('base64')}`;
/** A key with an empty exponent. */
const NO_EXPONENT = `ssh-rsa ${Buffer.concat(['ssh-rsa', '', Buffer.alloc(256, 1)].map(wireString)).toString('base64')}`;
const SMALL = rsaLine(1_024);
const AUTHORITY = `@cert-authority *.example.org ${KEY}`;

test('a pin is stored without its comment', () => {
  expect(readPin(` ${KEY}  me@here `)).toEqual({ pin: KEY });
  expect(readPin(`  @cert-authority\t*.example.org  ${KEY}  the CA`)).toEqual({ pin: AUTHORITY });
});

test.each([
  [`@revoked * ${KEY}`, /has the marker @revoked: only @cert-authority is known/],
  [`@cert-authority ${KEY}`, /^must be "@cert-authority HOSTS ssh-ed25519/],
  ['@cert-authority * ssh-ed25519 AAAA', /^must be "@cert-authority HOSTS/],
  [`@cert-authority * ${SHORT}`, /^must be "@cert-authority HOSTS/],
  [`@cert-authority * ${OFF_CURVE}`, /^must be "@cert-authority HOSTS/],
  [`@cert-authority * ${NO_EXPONENT}`, /^must be "@cert-authority HOSTS/],
  [`@cert-authority * ${SMALL}`, /of 2048 bits at least/],
  [NO_EXPONENT, /^must be a public key/],
  ['@cert-authority', /^must be "@cert-authority HOSTS/],
  [`@cert-authority * ${KEY.replace(/^\S+/, 'ssh-dss')}`, /the key's type is one of ssh-ed25519,/],
  [`@cert-authority * ${KEY.replace(/^\S+/, 'ssh-rsa')}`, /^must be "@cert-authority HOSTS/],
  [`@cert-authority |1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ${KEY}`, /hashed/],
  ['ssh-ed25519', /^must be a public key/],
])('%s is refused', (line, problem) => {
  expect(readPin(line)).toEqual({ problem: expect.stringMatching(problem) });
});

test('an authority is for the hosts of its patterns alone', () => {
  const at = (address: string, port = 22) => ({ address, port });
  const lists: [string, ReturnType<typeof at>, boolean][] = [
    ['*.example.org', at('Node.Example.org'), true],
    ['*.EXAMPLE.org', at('node.example.org'), true],
    ['*.example.org', at('node.example.org', 2222), true],
    ['[*.example.org]:2222', at('node.example.org', 2222), true],
    ['[*.example.org]:2222', at('node.example.org'), false],
    ['*.example.org,!gate.example.org', at('gate.example.org'), false],
    ['!gate.example.org,*.example.org', at('node.example.org'), true],
    ['!gate.example.org', at('node.example.org'), false],
    ['!gate.example.org,*', at('gate.example.org'), false],
    ['!gate.example.org,*', at('gate.example.org', 2222), false],
    ['![gate.example.org]:2222,*', at('gate.example.org', 2222), false],
    ['![gate.example.org]:2222,*', at('gate.example.org'), true],
    ['10.0.?.*', at('10.0.3.25'), true],
    ['example.org', at('node.example.org'), false],
    ['*', at('fe80::1'), true],
  ];
  for (const [patterns, place, fits] of lists)
    expect([patterns, place, isFor(`@cert-authority ${patterns} ${KEY}`, place)]).toEqual([
      patterns,
      place,
      fits,
    ]);
});

test('keys of the host and of authorities are not mixed up', () => {
  const keys = [AUTHORITY, KEY];
  expect(ownKeys(keys)).toEqual([KEY]);
  expect(keyLineIn(AUTHORITY)).toBe(KEY);
  expect(authoritiesFor({ address: 'node.example.org', port: 22, keys })).toEqual([keyBytes(KEY)]);
  expect(authoritiesFor({ address: 'node.example.com', port: 22, keys })).toEqual([]);
});

test('no pattern takes long', () => {
  const name = 'a'.repeat(253);
  const at = performance.now();
  expect(fitsPattern(name, `${'*a'.repeat(120)}b`)).toBe(false);
  expect(fitsPatterns([name], `${'*a'.repeat(120)}*`)).toBe(true);
  expect(performance.now() - at).toBeLessThan(1_000);
});

function rsaLine(modulusLength: number): string {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength });
  const { n = '', e = '' } = publicKey.export({ format: 'jwk' });
  const modulus = Buffer.concat([Buffer.alloc(1), Buffer.from(n, 'base64url')]);
  const parts = ['ssh-rsa', Buffer.from(e, 'base64url'), modulus].map(wireString);
  return `ssh-rsa ${Buffer.concat(parts).toString('base64')}`;
}
