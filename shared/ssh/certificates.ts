import { WireReader, wireString } from './wire.ts';

/** A certificate in OpenSSH's format (its PROTOCOL.certkeys). */
export interface SshCertificate {
  /** `ssh-ed25519`, `ssh-rsa` or `ecdsa-sha2-…`, of the key that it certifies. */
  keyType: string;
  /** The certificate in wire format. */
  blob: Buffer;
  /** The certified public key in wire format. */
  publicKey: Buffer;
  kind: 'user' | 'host';
  keyId: string;
  /** User or host names; none: any. */
  principals: string[];
  /** In seconds since 1970. The certificate is no longer valid at `validBefore` itself. */
  validAfter: bigint;
  validBefore: bigint;
  /** The authority's public key in wire format, what it signed, and its signature. */
  authority: Buffer;
  signed: Buffer;
  signature: Buffer;
  /** Names of options that must be understood to accept it. */
  criticalOptions: string[];
}

const SUFFIX = '-cert-v01@openssh.com';
/** The number of strings that follow a key's type in wire format. */
const KEY_FIELDS: Record<string, number> = {
  'ssh-ed25519': 1,
  'ssh-rsa': 2,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
};
/** The types of keys that may be certified, and may certify. */
export const KEY_TYPES = Object.keys(KEY_FIELDS);
const KINDS: Record<number, SshCertificate['kind']> = { 1: 'user', 2: 'host' };

/** Reads a line such as `ssh-ed25519-cert-v01@openssh.com AAAA… comment`; undefined for others. Verifies no signature. */
export function parseCertificate(line: string): SshCertificate | undefined {
  const [type, encoded = ''] = line.trim().split(/\s+/);
  const certificate = parseCertificateBlob(Buffer.from(encoded, 'base64'));
  return certificate && `${certificate.keyType}${SUFFIX}` === type ? certificate : undefined;
}

/** Reads a certificate in wire format; undefined for other bytes. */
export function parseCertificateBlob(blob: Buffer): SshCertificate | undefined {
  try {
    return read(blob);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function read(blob: Buffer): SshCertificate | undefined {
  const reader = new WireReader(blob);
  const type = reader.text();
  if (!type.endsWith(SUFFIX)) return undefined;
  const keyType = type.slice(0, -SUFFIX.length);
  const fields = Object.hasOwn(KEY_FIELDS, keyType) ? KEY_FIELDS[keyType] : undefined;
  if (fields === undefined) return undefined;
  reader.string(); // the nonce
  const key = Array.from({ length: fields }, () => reader.string());
  reader.uint64(); // the serial number
  const kind = KINDS[reader.uint32()];
  const keyId = reader.text();
  const principals = readAll(reader.string(), names => names.text());
  const [validAfter, validBefore] = [reader.uint64(), reader.uint64()];
  const criticalOptions = readAll(reader.string(), options => {
    const name = options.text();
    options.string();
    return name;
  });
  reader.string(); // extensions, which may be ignored
  reader.string(); // reserved
  const authority = reader.string();
  const signed = blob.subarray(0, reader.position);
  const signature = reader.string();
  if (!kind || !reader.isAtEnd) return undefined;
  const publicKey = Buffer.concat([keyType, ...key].map(wireString));
  return {
    keyType,
    blob,
    publicKey,
    kind,
    keyId,
    principals,
    validAfter,
    validBefore,
    authority,
    signed,
    signature,
    criticalOptions,
  };
}

function readAll<T>(bytes: Buffer, readOne: (reader: WireReader) => T): T[] {
  const reader = new WireReader(bytes);
  const found: T[] = [];
  while (!reader.isAtEnd) found.push(readOne(reader));
  return found;
}

/** Whether the certificate is valid at this time. */
export function isValidAt({ validAfter, validBefore }: SshCertificate, time: Date): boolean {
  const seconds = BigInt(Math.floor(time.getTime() / 1_000));
  return validAfter <= seconds && seconds < validBefore;
}
