import { createECDH, createHash, createHmac } from 'node:crypto';
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import { WindlassError } from '../errors/errors.ts';

/** HPKE in base mode (RFC 9180) with DHKEM(P-256, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM. */
const suite = new CipherSuite({
  kem: new DhkemP256HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes256Gcm(),
});
/** Has the secret and the destination that it may be sent to (decision 35). */
const VERSION = 2;
/** 0.1.0 sealed the secret alone so: nobody opens it any more. */
const VERSION_WITHOUT_DESTINATION = 1;
const ID_BYTES = 4;

/** A key in the form `id.base64url`; sealed bytes name the id of their key. */
interface NamedKey {
  id: string;
  bytes: Buffer;
}

function parseKey(text: string, setting: string): NamedKey {
  const [id, encoded] = text.trim().split('.');
  if (!id || !encoded || !/^[0-9a-f]{8}$/.test(id))
    throw new Error(`${setting} must be what \`windlass keys new\` prints`);
  return { id, bytes: Buffer.from(encoded, 'base64url') };
}

/** Generates a key pair in the form of SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS. */
export async function generateSealKeys(): Promise<{ publicKey: string; privateKey: string }> {
  const pair = await suite.kem.generateKeyPair();
  const publicBytes = Buffer.from(await suite.kem.serializePublicKey(pair.publicKey));
  const privateBytes = Buffer.from(await suite.kem.serializePrivateKey(pair.privateKey));
  const id = createHash('sha256')
    .update(publicBytes)
    .digest('hex')
    .slice(0, 2 * ID_BYTES);
  return {
    publicKey: `${id}.${publicBytes.toString('base64url')}`,
    privateKey: `${id}.${privateBytes.toString('base64url')}`,
  };
}

/** The ids of private keys, in their order; null where there are none. */
export function keyIds(privateKeys: string | undefined): string[] | null {
  return privateKeys?.split(',').map(key => parseKey(key, 'SEAL_PRIVATE_KEYS').id) ?? null;
}

/** The SEAL_PUBLIC_KEY of the first private key. */
export function publicKeyOf(privateKeys: string): string {
  const [first = ''] = privateKeys.split(',');
  const { id, bytes } = parseKey(first, 'SEAL_PRIVATE_KEYS');
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(bytes);
  return `${id}.${pair.getPublicKey('base64url')}`;
}

/** Whether bytes were sealed with this public key, in the present version. */
export function isSealedWith(publicKey: string, sealed: Buffer): boolean {
  const { id } = parseKey(publicKey, 'SEAL_PUBLIC_KEY');
  return sealed[0] === VERSION && sealed.subarray(1, 1 + ID_BYTES).toString('hex') === id;
}

/** What a sealed credential belongs to; unsealing it for anything else fails. */
export interface SealContext {
  sid: string;
  owner: string;
  hostname: string;
}

/**
 * What the sealed variables of a session's commands belong to: they do not open as a credential, nor a credential as variables.
 */
export type EnvContext = SealContext & { of: 'env' };

/** What the key of a webhook's signatures belongs to. */
interface WebhookContext {
  webhook: string;
  owner: string;
}

/** What is sealed. */
export interface Sealed<T> {
  /** The only destination that a credential may be sent to, as destinationDigest() has it. */
  destination: string;
  secret: T;
}

/** The form of sealed bytes, in which the destination is called `place`. */
interface Stored<T> {
  place: string;
  secret: T;
}

const info = (context: SealContext | EnvContext | WebhookContext) => {
  const words = 'webhook' in context ? wordsOfWebhook(context) : wordsOfSession(context);
  return new TextEncoder().encode(JSON.stringify(words));
};
const wordsOfWebhook = ({ webhook, owner }: WebhookContext) => ['windlass webhook', webhook, owner];
// With the version: bytes of one cannot be passed off as another's.
const wordsOfSession = (context: SealContext | EnvContext) => [
  `windlass session ${VERSION}`,
  context.sid,
  context.owner,
  context.hostname,
  ...('of' in context ? [context.of] : []),
];

/** Encrypts a credential, and where it may be sent, so that only a holder of the private key can read it. */
export async function seal(
  publicKey: string,
  context: SealContext | EnvContext | WebhookContext,
  { destination, secret }: Sealed<unknown>,
): Promise<Buffer> {
  const key = parseKey(publicKey, 'SEAL_PUBLIC_KEY');
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(arrayBuffer(key.bytes)),
    info: arrayBuffer(info(context)),
  });
  const stored: Stored<unknown> = { place: destination, secret };
  const sealed = await sender.seal(arrayBuffer(Buffer.from(JSON.stringify(stored))));
  const head = Buffer.concat([
    Buffer.from([VERSION]),
    Buffer.from(key.id, 'hex'),
    Buffer.from([sender.enc.byteLength]),
  ]);
  return Buffer.concat([head, Buffer.from(sender.enc), Buffer.from(sealed)]);
}

/**
 * Decrypts a credential with the key that it names. Throws `remote_authentication_failed` when that key was removed or
 * 0.1.0 sealed it, and an error of the library when the bytes or the context differ from what was sealed.
 */
export async function unseal<T>(
  privateKeys: string,
  context: SealContext | EnvContext | WebhookContext,
  sealed: Buffer,
): Promise<Sealed<T>> {
  const [version] = sealed;
  if (version === VERSION_WITHOUT_DESTINATION)
    throw cannotDecrypt('0.1.0 sealed them, without the destination that they may be sent to');
  if (version !== VERSION) throw new Error('sealed in an unknown version');
  const id = sealed.subarray(1, 1 + ID_BYTES).toString('hex');
  const key = privateKeys
    .split(',')
    .map(text => parseKey(text, 'SEAL_PRIVATE_KEYS'))
    .find(candidate => candidate.id === id);
  if (!key) throw cannotDecrypt(`SEAL_PRIVATE_KEYS has no key ${id} any more`);
  const encStart = 2 + ID_BYTES;
  const encEnd = encStart + (sealed[1 + ID_BYTES] ?? 0);
  const recipient = await suite.createRecipientContext({
    recipientKey: await suite.kem.deserializePrivateKey(arrayBuffer(key.bytes)),
    enc: arrayBuffer(sealed.subarray(encStart, encEnd)),
    info: arrayBuffer(info(context)),
  });
  const opened = await recipient.open(arrayBuffer(sealed.subarray(encEnd)));
  const { place, secret } = JSON.parse(Buffer.from(opened).toString()) as Stored<T>;
  return { destination: place, secret };
}

const cannotDecrypt = (why: string) =>
  new WindlassError('remote_authentication_failed', {
    detail: `The session's credentials cannot be decrypted: ${why}.`,
    hint: 'Open a new session.',
  });

/** A keyed hash for comparing requests that may hold passwords, without storing them. */
export function hmac(secretKey: string, ...parts: string[]): string {
  const mac = createHmac('sha256', secretKey);
  for (const part of parts) mac.update(`${Buffer.byteLength(part)}:${part}`);
  return mac.digest('base64url');
}

function arrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

/** How a user logs in to a remote host; what the host asks for besides, it asks the user. */
export interface Credential {
  password?: string;
  /** Without a passphrase. */
  privateKey?: string;
  /** The line of an OpenSSH certificate of the private key. */
  certificate?: string;
  /** The credential for the jump host; absent: this one. */
  jump?: JumpCredential;
}

export interface JumpCredential extends Credential {
  username: string;
}
