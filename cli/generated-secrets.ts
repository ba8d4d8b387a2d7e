import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../shared/config.ts';
import { generateSealKeys } from '../shared/secrets.ts';
import { errnoOf, StartError } from './start-error.ts';
import { writeAtomically } from './write-atomically.ts';

type Secrets = Required<Pick<Config, 'SECRET_KEY' | 'SEAL_PUBLIC_KEY' | 'SEAL_PRIVATE_KEYS'>>;

/**
 * Loads `secrets.json` from the data directory, which only its user can read; generates it at the first start. Settings
 * override it.
 */
export async function loadOrGenerateSecrets(
  dataDir: string,
  config: Config,
): Promise<Record<keyof Secrets, string>> {
  if ((config.SEAL_PUBLIC_KEY === undefined) !== (config.SEAL_PRIVATE_KEYS === undefined)) {
    throw new StartError('SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS belong together.', {
      hint: 'Set both, as `windlass keys new` prints them, or none.',
    });
  }
  const path = join(dataDir, 'secrets.json');
  const stored = (await readSecrets(path)) ?? (await generateSecrets(path));
  return {
    SECRET_KEY: config.SECRET_KEY ?? stored.SECRET_KEY,
    SEAL_PUBLIC_KEY: config.SEAL_PUBLIC_KEY ?? stored.SEAL_PUBLIC_KEY,
    SEAL_PRIVATE_KEYS: config.SEAL_PRIVATE_KEYS ?? stored.SEAL_PRIVATE_KEYS,
  };
}

async function readSecrets(path: string): Promise<Record<keyof Secrets, string> | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw new StartError(`${path} cannot be read.`, {
      hint: 'Restore it: without it the credentials of open sessions are lost.',
      cause: error,
    });
  }
}

async function generateSecrets(path: string): Promise<Record<keyof Secrets, string>> {
  const { publicKey, privateKey } = await generateSealKeys();
  const secrets = {
    SECRET_KEY: randomBytes(32).toString('base64url'),
    SEAL_PUBLIC_KEY: publicKey,
    SEAL_PRIVATE_KEYS: privateKey,
  };
  await writeAtomically(path, JSON.stringify(secrets));
  return secrets;
}
