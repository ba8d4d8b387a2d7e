import { randomBytes } from 'node:crypto';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { printRecord } from '../output/print-records.ts';
import type { CommandContext } from './command-context.ts';

/** `windlass keys new`: prints new secrets of a fleet as lines for its environment. */
export async function printNewKeys(
  _context: CommandContext,
  options: { json?: boolean },
): Promise<void> {
  const { publicKey, privateKey } = await generateSealKeys();
  const SECRET_KEY = randomBytes(32).toString('base64url');
  const lines = [
    '# API processes alone',
    `SECRET_KEY=${SECRET_KEY}`,
    `SEAL_PUBLIC_KEY=${publicKey}`,
    '# remote and video workers alone; put a new key first and keep the old ones for open sessions',
    `SEAL_PRIVATE_KEYS=${privateKey}`,
  ];
  const keys = { SECRET_KEY, SEAL_PUBLIC_KEY: publicKey, SEAL_PRIVATE_KEYS: privateKey };
  await printRecord(keys, { sentence: lines.join('\n'), ...options });
}
