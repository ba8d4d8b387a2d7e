import { createPrivateKey, type KeyObject } from 'node:crypto';
import ssh2 from 'ssh2';
import { wireString, wireUint32 } from '../../shared/ssh/wire.ts';
import { isPkcs8, openPkcs8 } from './pkcs8.ts';

/** The key without a passphrase, or what is wrong with it. */
export type ParsedKey = { key: string } | { problem: string };

const NO_KEY = 'must be a private key in OpenSSH or PEM form';
const NOT_OPENED = 'cannot be opened with this passphrase';
const OTHER_TYPE =
  'must be an RSA, Ed25519 or ECDSA key, the last on a curve nistp256, nistp384 or nistp521';
const TOO_MANY_ROUNDS =
  'takes too long to open; openssl pkcs8 -topk8 -iter 100000 makes it one that takes less';

interface OpenOptions {
  passphrase?: string;
  /** Rewrite the key in its shortest form, which is quick to parse again. */
  rewrite?: boolean;
}

/** Parses a private key in this thread. A long or encrypted key can block it for any time. */
export function parsePrivateKey(privateKey: string, options: OpenOptions = {}): ParsedKey {
  try {
    return isPkcs8(privateKey) ? convert(privateKey, options) : open(privateKey, options);
  } catch {
    // parseKey() and createPrivateKey() throw for some malformed keys.
    return { problem: NO_KEY };
  }
}

/** Opens a PKCS #8 key in a form that ssh2 reads: it reads no PKCS #8. */
function convert(privateKey: string, { passphrase }: OpenOptions): ParsedKey {
  const key = openPkcs8(privateKey, passphrase);
  if (key === 'wrong passphrase') return { problem: NOT_OPENED };
  if (key === 'too many rounds') return { problem: TOO_MANY_ROUNDS };
  const text = writeForSsh2(key);
  if (text === undefined || ssh2.utils.parseKey(text) instanceof Error)
    return { problem: OTHER_TYPE };
  return { key: text };
}

function writeForSsh2(key: KeyObject): string | undefined {
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return key.export({ type: 'pkcs1', format: 'pem' }).toString();
    case 'ec':
      return key.export({ type: 'sec1', format: 'pem' }).toString();
    case 'ed25519':
      return writeEd25519(key);
    default:
      return undefined;
  }
}

function open(privateKey: string, { passphrase, rewrite }: OpenOptions): ParsedKey {
  const parsed = ssh2.utils.parseKey(privateKey, passphrase);
  if (parsed instanceof Error) {
    // The library's message may quote the key.
    const isEncrypted = /passphrase|encrypted|decrypt/i.test(parsed.message);
    return { problem: isEncrypted ? NOT_OPENED : NO_KEY };
  }
  // parseKey() accepts public keys too.
  if (!parsed.isPrivateKey()) return { problem: NO_KEY };
  if (!rewrite) return { key: privateKey };
  const pem = parsed.getPrivatePEM();
  // ssh2 writes Ed25519 keys as PKCS #8, which it cannot read.
  return { key: parsed.type === 'ssh-ed25519' ? writeEd25519(createPrivateKey(pem)) : pem };
}

/** OpenSSH's own format without encryption (its PROTOCOL.key). */
function writeEd25519(key: KeyObject): string {
  const { d = '', x = '' } = key.export({ format: 'jwk' });
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
    // As in RFC 8709.
    wireString(Buffer.concat([wireString('ssh-ed25519'), wireString(point)])),
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
