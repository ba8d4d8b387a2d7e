import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import type { SealContext } from '../../shared/secrets/secrets.ts';

/** Seals as the previous release did, in version 1: the secret alone, without the place. */
export async function sealAsBefore(
  publicKey: string,
  { sid, owner, hostname }: SealContext,
  it: unknown,
): Promise<Buffer> {
  const [id = '', key = ''] = publicKey.split('.');
  const kem = new DhkemP256HkdfSha256();
  const suite = new CipherSuite({ kem, kdf: new HkdfSha256(), aead: new Aes256Gcm() });
  const bytes = (text: string) => new TextEncoder().encode(text).buffer as ArrayBuffer;
  const sender = await suite.createSenderContext({
    recipientPublicKey: await kem.deserializePublicKey(
      new Uint8Array(Buffer.from(key, 'base64url')).buffer,
    ),
    info: bytes(JSON.stringify(['windlass session', sid, owner, hostname])),
  });
  const sealed = Buffer.from(await sender.seal(bytes(JSON.stringify(it))));
  const enc = Buffer.from(sender.enc);
  return Buffer.concat([
    Buffer.from([1]),
    Buffer.from(id, 'hex'),
    Buffer.from([enc.length]),
    enc,
    sealed,
  ]);
}
