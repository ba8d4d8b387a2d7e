import { createPrivateKey, type KeyObject } from 'node:crypto';

/**
 * The most rounds of a key derivation, which take seconds. OpenSSL derives a key in one call, which the end of its thread does
 * not interrupt. It writes 2,048 rounds by default.
 */
const MAX_ROUNDS = 4_000_000;
const BLOCK =
  /^\s*-----BEGIN (ENCRYPTED )?PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END (?:ENCRYPTED )?PRIVATE KEY-----\s*$/;
const SEQUENCE = 0x30;
const INTEGER = 0x02;

export const isPkcs8 = (text: string): boolean =>
  /^\s*-----BEGIN (ENCRYPTED )?PRIVATE KEY-----/.test(text);

/** Opens a PKCS #8 key, as openssl writes it. Throws for what is none. An encrypted key needs a passphrase. */
export function openPkcs8(
  text: string,
  passphrase: string | undefined,
): KeyObject | 'too many rounds' | 'wrong passphrase' {
  const [, encrypted, body = ''] = BLOCK.exec(text) ?? [];
  const options = { key: Buffer.from(body, 'base64'), format: 'der', type: 'pkcs8' } as const;
  if (!encrypted) return createPrivateKey(options);
  if (!passphrase) return 'wrong passphrase';
  const [whole] = readElements(options.key);
  const [algorithm] = readElements(whole?.content ?? Buffer.alloc(0));
  if (!algorithm) throw new Error('No PKCS #8.');
  // The rounds of PBKDF2, or the costs of scrypt, which multiply.
  if (multiplyIntegers(algorithm) > MAX_ROUNDS) return 'too many rounds';
  try {
    return createPrivateKey({ passphrase, ...options });
  } catch {
    return 'wrong passphrase';
  }
}

interface Element {
  tag: number;
  content: Buffer;
}

/** The elements of DER one after another. Throws for what is not DER. */
function readElements(der: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < der.length; ) {
    const tag = der.readUInt8(at);
    let length = der.readUInt8(at + 1);
    at += 2;
    if (length >= 0x80) {
      const bytes = length - 0x80;
      length = der.readUIntBE(at, bytes);
      at += bytes;
    }
    elements.push({ tag, content: der.subarray(at, at + length) });
    at += length;
  }
  return elements;
}

/** The product of all integers in an element. Zeros count as ones, so that none hides the others. */
function multiplyIntegers({ tag, content }: Element): number {
  if (tag === INTEGER) return Number(`0x${content.toString('hex')}`) || 1;
  if (tag !== SEQUENCE) return 1;
  return readElements(content).reduce((product, each) => product * multiplyIntegers(each), 1);
}
