import { createPrivateKey } from 'node:crypto';
import ssh2 from 'ssh2';
import { wireString, wireUint32 } from '../../shared/ssh/wire.ts';

/** The key without a passphrase, or what is wrong with it. */
export type ParsedKey = { key: string } | { problem: string };

const NO_KEY = 'must be a private key in OpenSSH or PEM form';

interface OpenOptions {
  passphrase?: string;
  /** Rewrite the key in its shortest form, which is quick to parse again. */
  rewrite?: boolean;
}

/** Parses a private key in this thread. A long or encrypted key can block it for any time. */
export function parsePrivateKey(privateKey: string, options: OpenOptions = {}): ParsedKey {
  try {
    return open(privateKey, options);
  } catch {
    // parseKey() throws for some malformed keys.
    return { problem: NO_KEY };
  }
}

function open(privateKey: string, { passphrase, rewrite }: OpenOptions): ParsedKey {
  const parsed = ssh2.utils.parseKey(privateKey, passphrase);
  if (parsed instanceof Error) {
    // The library's message may quote the key.
    const isEncrypted = /passphrase|encrypted|decrypt/i.test(parsed.message);
    return { problem: isEncrypted ? 'cannot be opened with this passphrase' : NO_KEY };
  }
  // parseKey() accepts public keys too.
  if (!parsed.isPrivateKey()) return { problem: NO_KEY };
  if (!rewrite) return { key: privateKey };
  const pem = parsed.getPrivatePEM();
  // ssh2 writes Ed25519 keys as PKCS #8, which it cannot read.
  return { key: parsed.type === 'ssh-ed25519' ? writeEd25519(pem, parsed.getPublicSSH()) : pem };
}

/** OpenSSH's own format without encryption (its PROTOCOL.key); `publicKey` is as in RFC 8709. */
function writeEd25519(pem: string, publicKey: Buffer): string {
  const { d = '', x = '' } = createPrivateKey(pem).export({ format: 'jwk' });
  const seed = Buffer.from(d, 'base64url');
  const point = Buffer.from(x, 'base64url');
  const check = Buffer.alloc(8);
  const secret = [
    wireString('ssh-ed25519'),
    wireString(point),
    wireString(Buffer.concat([seed, point])),
    wireString(''),
  ];
  const bytes = Buffer.concat([check, ...secret]);
  const padding = Buffer.from(
    Array.from({ length: (8 - (bytes.length % 8)) % 8 }, (_, i) => i + 1),
  );
  const whole = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    ...[wireString('none'), wireString('none'), wireString('')],
    wireUint32(1),
    wireString(publicKey),
    wireString(Buffer.concat([bytes, padding])),
  ]);
  const lines = whole.toString('base64').replace(/.{70}(?=.)/g, '$&\n');
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

/** The public key of a private key without a passphrase, in wire format. */
export function publicKeyOf(privateKey: string): Buffer {
  const parsed = ssh2.utils.parseKey(privateKey);
  if (parsed instanceof Error) throw parsed;
  return parsed.getPublicSSH();
}
