import { randomBytes } from 'node:crypto';
import { readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SystemUser } from '../../shared/process/system-users.ts';
import { syncDirectory } from '../../shared/storage/sync-directory.ts';
import { ifMissing } from '../command-error.ts';
import { writeAtomically } from '../write-atomically.ts';
import { runTool } from './run-tool.ts';
import type { ServerLog } from './server-log.ts';

export interface Password {
  text: string;
  /** The file that contains it now. */
  path: string;
  /** True while the database does not have it yet. */
  isNew: boolean;
}

/**
 * Reads `<dataDir>/postgres.password`, or generates a password of 256 random bits. A new one is stored under another name
 * until the database has it, so that the file and the database never differ.
 */
export async function readPassword(
  dataDir: string,
  user: SystemUser | undefined,
): Promise<Password> {
  const path = join(dataDir, 'postgres.password');
  const known = (await readFile(path, 'utf8').catch(ifMissing(''))).trim();
  if (known) return { text: known, path, isNew: false };
  const text = randomBytes(32).toString('base64url');
  await writeAtomically(`${path}.new`, text, user);
  return { text, path: `${path}.new`, isNew: true };
}

/** Gives a new password's file its final name. Call it when the database has the password. */
export async function commitPassword({ path, isNew }: Password): Promise<void> {
  if (!isNew) return;
  await rename(path, path.slice(0, -'.new'.length));
  await syncDirectory(dirname(path));
}

const SET_PASSWORD =
  'echo "ALTER ROLE $3 PASSWORD \'$(cat "$4")\'" | "$1" --single -D "$2" -c exit_on_error=true postgres';

/**
 * Gives an existing database a new password, where its file was lost, by Postgres's single-user mode: this asks for no
 * password, and nothing else may run there.
 */
export function setPassword(options: {
  directory: string;
  postgres: string;
  role: string;
  password: Password;
  user: SystemUser | undefined;
  log: ServerLog;
  signal?: AbortSignal;
}): Promise<void> {
  const { postgres, role, password, ...rest } = options;
  const { directory } = rest;
  // A shell reads the file, so that the words are on no command line.
  const command = ['/bin/sh', '-c', SET_PASSWORD, 'sh', postgres, directory, role, password.path];
  return runTool({ ...rest, task: 'set its password', command });
}
