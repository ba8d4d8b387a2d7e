import { expect, test } from 'vitest';
import { CURRENT_ALGORITHMS } from '../../shared/ssh/algorithms.ts';
import { WireReader, wireString, wireUint32 } from '../../shared/ssh/wire.ts';
import { CertificateHandshake } from './certificate-handshake.ts';

const CERTIFIED = 'ssh-ed25519-cert-v01@openssh.com';
const CERTIFICATE = Buffer.from('a certificate');

const message = (type: number, ...parts: Buffer[]) => {
  const payload = Buffer.concat([Buffer.from([type]), ...parts]);
  const padding = 4 + ((8 - ((payload.length + 9) % 8)) % 8);
  return Buffer.concat([
    wireUint32(payload.length + padding + 1),
    Buffer.from([padding]),
    ...[payload, Buffer.alloc(padding)],
  ]);
};
const keyExchange = (kex: string, hostKeys: string) =>
  message(
    20,
    Buffer.alloc(16),
    ...[kex, hostKeys, '', '', '', '', '', '', '', ''].map(wireString),
    Buffer.alloc(5),
  );
const LINES = Buffer.from('Welcome.\r\nSSH is spoken here:\nSSH-2.0-x\r\n');
const NOISE = [
  message(2, wireString('x')),
  message(4, Buffer.from([1]), wireString('x'), wireString('')),
];
const REPLY = message(31, wireString(CERTIFICATE), wireString('point'), wireString('signature'));

/** What the host shows after these bytes, and what it was told. */
function shake(bytes: Buffer, step: number) {
  const told: Buffer[] = [];
  const handshake = new CertificateHandshake(CURRENT_ALGORITHMS, sent => told.push(sent));
  for (let at = 0; at < bytes.length; at += step) {
    const shown = handshake.take(bytes.subarray(at, at + step));
    if (shown) return { shown, told };
  }
  return { shown: undefined, told };
}

test.each([1, 7, 100_000])('what may come besides is passed over, in pieces of %i bytes', step => {
  const extensions = message(7, wireUint32(0));
  const bytes = [...NOISE, keyExchange('ecdh-sha2-nistp256', `ssh-ed25519,${CERTIFIED}`), ...NOISE];
  const { shown, told } = shake(Buffer.concat([LINES, ...bytes, extensions, REPLY]), step);
  expect(shown).toEqual({ certificate: CERTIFICATE });
  const [version, ...packets] = told;
  expect(String(version)).toBe('SSH-2.0-Windlass\r\n');
  // RFC 4253, 6.
  for (const packet of packets) {
    expect(packet.length % 8).toBe(0);
    expect(packet.readUInt32BE(0)).toBe(packet.length - 4);
    expect(packet.readUInt8(4)).toBeGreaterThanOrEqual(4);
  }
  expect(packets.map(packet => packet.readUInt8(5))).toEqual([20, 30, 1]);
  const offered = new WireReader(packets[0]?.subarray(22) ?? Buffer.alloc(0));
  expect(offered.names()).toContain('curve25519-sha256');
  // A host that has no certificate must not show a key in its place.
  expect(offered.names().filter(name => !name.endsWith('-cert-v01@openssh.com'))).toEqual([]);
});

test('a host without a certificate is told nothing more', () => {
  const { shown, told } = shake(
    Buffer.concat([LINES, keyExchange('curve25519-sha256', 'ssh-ed25519')]),
    64,
  );
  expect(shown).toEqual({ certificate: undefined });
  expect(told.slice(2).map(packet => packet.readUInt8(5))).toEqual([1]);
});

test.each([
  [
    'no common key exchange',
    keyExchange('sntrup761x25519-sha512', CERTIFIED),
    'no matching key exchange algorithm',
  ],
  [
    'a farewell',
    message(1, wireUint32(2), wireString('Too\x1b[31m many'), wireString('')),
    'closed the connection (Too[31m many)',
  ],
  ['another message', message(50, wireString('x')), 'the message 50 too early'],
  ['a message that is cut off', message(31, wireUint32(5_000)), 'cut off'],
])('%s is an error', (_, bytes, words) => {
  expect(() => shake(Buffer.concat([LINES, bytes]), 64)).toThrow(words);
});

test('a host begins one key exchange, since each costs a key', () => {
  const opening = keyExchange('ecdh-sha2-nistp521', CERTIFIED);
  expect(() => shake(Buffer.concat([LINES, opening, opening, REPLY]), 100_000)).toThrow(
    'the host sent the message 20 too often',
  );
});
