import { randomBytes } from 'node:crypto';
import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generateSealKeys } from '../shared/secrets/secrets.ts';
import type { Config } from '../shared/settings/config.ts';
import { CommandError, errnoOf } from './command-error.ts';
import { writeAtomically } from './write-atomically.ts';

/** What `secrets.json` in the data directory holds, which only its user can read. */
export interface StoredSecrets {
  SECRET_KEY: string;
  /** Another one, by which repeated requests are recognised: see `windlass keys rotate`. */
  SECRET_KEY_BEFORE?: string;
  SEAL_PUBLIC_KEY: string;
  SEAL_PRIVATE_KEYS: string;
}

/** `windlass keys rotate` changes them while a supervisor runs. */
const LOOK_MS = 1_000;
const pathOf = (dataDir: string) => join(dataDir, 'secrets.json');

/**
 * Loads `secrets.json` from the data directory, which only its user can read; generates it at the first start. Settings
 * override it.
 */
export async function loadOrGenerateSecrets(
  dataDir: string,
  config: Config,
): Promise<StoredSecrets> {
  if ((config.SEAL_PUBLIC_KEY === undefined) !== (config.SEAL_PRIVATE_KEYS === undefined)) {
    throw new CommandError('SEAL_PUBLIC_KEY and SEAL_PRIVATE_KEYS belong together.', {
      hint: 'Set both, as `windlass keys new` prints them, or none.',
    });
  }
  return override((await readSecrets(dataDir)) ?? (await generateSecrets(dataDir)), config);
}

const override = (stored: StoredSecrets, config: Config): StoredSecrets => ({
  ...(config.SECRET_KEY
    ? { SECRET_KEY: config.SECRET_KEY, SECRET_KEY_BEFORE: config.SECRET_KEY_BEFORE }
    : { SECRET_KEY: stored.SECRET_KEY, SECRET_KEY_BEFORE: stored.SECRET_KEY_BEFORE }),
  SEAL_PUBLIC_KEY: config.SEAL_PUBLIC_KEY ?? stored.SEAL_PUBLIC_KEY,
  SEAL_PRIVATE_KEYS: config.SEAL_PRIVATE_KEYS ?? stored.SEAL_PRIVATE_KEYS,
});

/** Calls `take` with the secrets now and each time that they were changed; returns what ends that. */
export function watchSecrets(
  dataDir: string,
  config: Config,
  take: (secrets: StoredSecrets) => void,
): () => void {
  const path = pathOf(dataDir);
  // A file that is being replaced is the old one or the new one: see writeAtomically().
  const look = () =>
    void readSecrets(dataDir).then(
      stored => stored && take(override(stored, config)),
      () => {},
    );
  watchFile(path, { interval: LOOK_MS, persistent: false }, look);
  // They may have been changed while the service began, which may take hours.
  look();
  return () => unwatchFile(path, look);
}

/** Undefined where there are none yet. Throws CommandError. */
export async function readSecrets(dataDir: string): Promise<StoredSecrets | undefined> {
  const path = pathOf(dataDir);
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw new CommandError(`${path} cannot be read.`, {
      hint: 'Restore it: without it the credentials of open sessions are lost.',
      cause: error,
    });
  }
}

export const writeSecrets = (dataDir: string, secrets: StoredSecrets): Promise<void> =>
  writeAtomically(pathOf(dataDir), JSON.stringify(secrets));

async function generateSecrets(dataDir: string): Promise<StoredSecrets> {
  const { publicKey, privateKey } = await generateSealKeys();
  const secrets = {
    SECRET_KEY: randomBytes(32).toString('base64url'),
    SEAL_PUBLIC_KEY: publicKey,
    SEAL_PRIVATE_KEYS: privateKey,
  };
  await writeSecrets(dataDir, secrets);
  return secrets;
}
