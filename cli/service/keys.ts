import { randomBytes } from 'node:crypto';
import { generateSealKeys } from '../../shared/secrets.ts';

/** `windlass keys new`: prints new secrets of a fleet as lines for its environment. */
export async function printNewKeys(): Promise<void> {
  const { publicKey, privateKey } = await generateSealKeys();
  const lines = [
    '# API processes alone',
    `SECRET_KEY=${randomBytes(32).toString('base64url')}`,
    `SEAL_PUBLIC_KEY=${publicKey}`,
    '# remote and video workers alone; put a new key first and keep the old ones for open sessions',
    `SEAL_PRIVATE_KEYS=${privateKey}`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
