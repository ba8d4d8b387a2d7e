import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import ssh2, { type ParsedKey } from 'ssh2';
import { privateParts } from '../../shared/process/private-parts.ts';
import { parseCertificate } from '../../shared/ssh/certificates.ts';
import { wireNumber, wireString } from '../../shared/ssh/wire.ts';

/** By type of key, the name of its signatures, and a hash if that does not imply one. */
const SIGNATURES: Record<string, { name: string; hash?: string }> = {
  'ssh-ed25519': { name: 'ssh-ed25519' },
  'ssh-rsa': { name: 'rsa-sha2-512', hash: 'sha512' },
  'ecdsa-sha2-nistp256': { name: 'ecdsa-sha2-nistp256', hash: 'sha256' },
  'ecdsa-sha2-nistp384': { name: 'ecdsa-sha2-nistp384', hash: 'sha384' },
  'ecdsa-sha2-nistp521': { name: 'ecdsa-sha2-nistp521', hash: 'sha512' },
};

interface CertifiedKey extends ParsedKey {
  /** The signature with its name in front (RFC 4253, 6.6). */
  signNamed(data: Buffer): Buffer;
}

/**
 * A private key, offered by its certificate, as a key of ssh2, which knows no login by certificate. The client must
 * have been given to signByCertificate().
 */
export function certifiedKey(privateKey: string, line: string): ParsedKey {
  const key = ssh2.utils.parseKey(privateKey);
  const certificate = parseCertificate(line);
  const signature = SIGNATURES[certificate?.keyType ?? ''];
  if (key instanceof Error || !certificate || !signature)
    throw new Error('the key or its certificate cannot be read');
  const pem = createPrivateKey(key.getPrivatePEM());
  const shape: Pick<CertifiedKey, 'getPublicSSH' | 'signNamed'> & { type: string } = {
    // For RSA the algorithm names the hash; the blob begins with the certificate's type.
    type: `${signature.name}-cert-v01@openssh.com`,
    getPublicSSH: () => certificate.blob,
    signNamed: data =>
      Buffer.concat([wireString(signature.name), wireString(signBytes(pem, data, signature.hash))]),
  };
  // What ssh2 recognizes its keys by is inherited.
  return Object.assign(Object.create(key), shape) as CertifiedKey;
}

function signBytes(key: KeyObject, data: Buffer, hash: string | undefined): Buffer {
  if (key.asymmetricKeyType !== 'ec') return sign(hash, data, key);
  // RFC 5656, 3.1.2: both numbers as mpint.
  const both = sign(hash, data, { key, dsaEncoding: 'ieee-p1363' });
  const half = both.length / 2;
  return Buffer.concat([both.subarray(0, half), both.subarray(half)].map(wireNumber));
}

type SignLater = (data: Buffer, done: (signature: Buffer) => void) => void;
/** Internals of ssh2 1.17.0, pinned by package.json, by which its client sends a login. */
interface Protocol {
  authPK(username: string, key: ParsedKey, algorithm?: string, sign?: SignLater): void;
  _kex: { sessionID: Buffer };
  _kexinit?: unknown;
  _authsQueue: string[];
  _packetRW: {
    write: { allocStart: number; alloc(bytes: number): Buffer; finalize(packet: Buffer): Buffer };
  };
  _cipher: { encrypt(packet: Buffer): void };
}

/**
 * Makes a connecting client sign logins by certificate as RFC 4252, 7 requires: a signature has the key's type name.
 * ssh2 would use that of the certificate, which servers refuse.
 */
export function signByCertificate(client: ssh2.Client): void {
  const { _protocol } = client as unknown as { _protocol?: object };
  const protocol = privateParts<Protocol>('the protocol of ssh2', _protocol, [
    'authPK',
    '_authsQueue',
    '_packetRW',
    '_cipher',
  ]);
  const authPK = protocol.authPK.bind(protocol);
  protocol.authPK = (username, key, algorithm, sign) => {
    if (!sign || !('signNamed' in key)) return authPK(username, key, algorithm, sign);
    // ssh2 makes what is to be signed: the session's id, then the request.
    authPK(username, key, algorithm, data => {
      const request = data.subarray(4 + protocol._kex.sessionID.length);
      const signature = (key as CertifiedKey).signNamed(data);
      send(protocol, Buffer.concat([request, wireString(signature)]));
    });
  };
}

function send(protocol: Protocol, payload: Buffer): void {
  if (protocol._kexinit !== undefined) throw new Error('the keys are exchanged anew');
  const { write } = protocol._packetRW;
  const packet = write.alloc(payload.length);
  payload.copy(packet, write.allocStart);
  // By it ssh2 knows what an answer is for.
  protocol._authsQueue.push('publickey');
  protocol._cipher.encrypt(write.finalize(packet));
}
