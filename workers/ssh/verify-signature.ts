import { createPublicKey, verify } from 'node:crypto';
import ssh2 from 'ssh2';
import { keyLine } from '../../shared/ssh/keys.ts';
import { WireReader } from '../../shared/ssh/wire.ts';

interface Algorithm {
  keyType: string;
  hash?: string;
  /** Bytes of each of the two numbers of ECDSA. */
  half?: number;
}

/** By the name of a signature (RFC 8709, 8332, 5656); without `ssh-rsa`, which uses SHA-1. */
const ALGORITHMS: Record<string, Algorithm> = {
  'ssh-ed25519': { keyType: 'ssh-ed25519' },
  'rsa-sha2-256': { keyType: 'ssh-rsa', hash: 'sha256' },
  'rsa-sha2-512': { keyType: 'ssh-rsa', hash: 'sha512' },
  'ecdsa-sha2-nistp256': { keyType: 'ecdsa-sha2-nistp256', hash: 'sha256', half: 32 },
  'ecdsa-sha2-nistp384': { keyType: 'ecdsa-sha2-nistp384', hash: 'sha384', half: 48 },
  'ecdsa-sha2-nistp521': { keyType: 'ecdsa-sha2-nistp521', hash: 'sha512', half: 66 },
};

/** Bytes signed by a key, all in wire format. */
interface Signed {
  key: Buffer;
  data: Buffer;
  signature: Buffer;
}

/** Why a signature does not count, as the end of a sentence about what is signed. */
export function findSignatureProblem(signed: Signed): string | undefined {
  const parts = readSignature(signed.signature);
  if (parts?.name === 'ssh-rsa') return 'is signed with SHA-1 (ssh-rsa)';
  return parts && isMadeBy(signed, parts)
    ? undefined
    : 'has a signature that its authority did not make';
}

function readSignature(signature: Buffer): { name: string; bytes: Buffer } | undefined {
  return orUndefined(() => {
    const reader = new WireReader(signature);
    const parts = { name: reader.text(), bytes: reader.string() };
    return reader.isAtEnd ? parts : undefined;
  });
}

function isMadeBy(
  { key, data }: Signed,
  { name, bytes }: { name: string; bytes: Buffer },
): boolean {
  const algorithm = Object.hasOwn(ALGORITHMS, name) ? ALGORITHMS[name] : undefined;
  const parsed = ssh2.utils.parseKey(keyLine(key));
  if (!algorithm || parsed instanceof Error || parsed.type !== algorithm.keyType) return false;
  const { hash, half } = algorithm;
  const raw = half === undefined ? bytes : joinNumbers(bytes, half);
  const by = createPublicKey(parsed.getPublicPEM());
  return raw !== undefined && verify(hash, data, { key: by, dsaEncoding: 'ieee-p1363' }, raw);
}

/** The two numbers of an ECDSA signature, each in `half` bytes; undefined if they are not that. */
function joinNumbers(bytes: Buffer, half: number): Buffer | undefined {
  return orUndefined(() => {
    const reader = new WireReader(bytes);
    const numbers = [reader.string(), reader.string()].map(number => {
      const start = number.findIndex(byte => byte !== 0);
      return number.subarray(start < 0 ? number.length : start);
    });
    if (!reader.isAtEnd || numbers.some(({ length }) => length > half)) return undefined;
    return Buffer.concat(numbers.flatMap(number => [Buffer.alloc(half - number.length), number]));
  });
}

/** Undefined where the bytes end too early. */
function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
