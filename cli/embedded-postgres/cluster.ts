import {
  chmod,
  chown,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { SystemUser } from '../../shared/process/system-users.ts';
import { findPostgresUser } from '../../shared/process/system-users.ts';
import { syncDirectory } from '../../shared/storage/sync-directory.ts';
import { CommandError, ifMissing } from '../command-error.ts';
import { findBinaries, type PostgresBinaries } from './binaries.ts';
import { commitPassword, type Password, readPassword, setPassword } from './password.ts';
import { choosePostgresUser } from './postgres-user.ts';
import { runTool } from './run-tool.ts';
import { openServerLog, type ServerLog } from './server-log.ts';
import { translateSystemError } from './translate-errors.ts';
import { stopOrphans } from './wrapper.ts';

export const DATABASE_USER = 'windlass';
export const DATABASE_NAME = 'postgres';

/** A data directory of Postgres on which a server can start. */
export interface Cluster {
  /** Its real path, `<dataDir>/postgres`. */
  directory: string;
  dataDir: string;
  user: SystemUser | undefined;
  binaries: PostgresBinaries;
  password: string;
  log: ServerLog;
}

interface ClusterOptions {
  dataDir: string;
  signal?: AbortSignal;
  systemDir?: string;
}

type Tools = Omit<Cluster, 'directory' | 'password'> & { signal?: AbortSignal };

/**
 * Opens the cluster `<dataDir>/postgres`, or creates it: under another name, which is then renamed, so that a directory of
 * this name is always complete. The caller has locked the data directory. Throws CommandError.
 */
export async function prepareCluster({
  dataDir,
  signal,
  systemDir,
}: ClusterOptions): Promise<Cluster> {
  let log: ServerLog | undefined;
  try {
    const user = choosePostgresUser(join(dataDir, 'postgres'));
    log = await openServerLog(dataDir);
    const binaries = await findBinaries({ user, dataDir, systemDir });
    return await openOrCreate({ dataDir, user, log, binaries, signal });
  } catch (error) {
    await log?.close();
    throw translateSystemError(error, dataDir);
  }
}

async function openOrCreate({ signal, ...tools }: Tools): Promise<Cluster> {
  const { dataDir, user, binaries, log } = tools;
  await removeIncomplete(dataDir, user);
  const path = join(dataDir, 'postgres');
  const exists = !(await isEmpty(path));
  if (exists) await checkDirectory(path, binaries);
  const password = await readPassword(dataDir, user);
  if (!exists) await initialize({ ...tools, signal, path, password });
  const directory = await realpath(path);
  if (exists && password.isNew) {
    await requireNoOrphans(directory, user);
    const { postgres } = binaries;
    await setPassword({ directory, postgres, role: DATABASE_USER, password, user, log, signal });
  }
  await commitPassword(password);
  return { ...tools, directory, password: password.text };
}

async function initialize(options: Tools & { path: string; password: Password }): Promise<void> {
  const { dataDir, user, binaries, log, signal, path, password } = options;
  const incomplete = await realpath(await mkdtemp(join(dataDir, 'postgres.init-')));
  try {
    if (user) await chown(incomplete, user.uid, user.gid);
    await runTool({
      directory: incomplete,
      user,
      log,
      signal,
      task: 'create its data directory',
      command: [
        binaries.initdb,
        `--pgdata=${incomplete}`,
        `--username=${DATABASE_USER}`,
        `--pwfile=${password.path}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        // Sorts text alike on every machine, whichever locales it has.
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--no-instructions',
      ],
    });
    await rename(incomplete, path);
    await syncDirectory(dataDir);
  } catch (error) {
    await rm(incomplete, { recursive: true, force: true, maxRetries: 5 });
    throw error;
  }
}

/** Throws CommandError unless the directory is a cluster of this version and user. */
async function checkDirectory(path: string, { major }: PostgresBinaries): Promise<void> {
  const { uid, mode } = await stat(path);
  const own = process.geteuid?.();
  if (own !== 0 && uid !== own) {
    throw new CommandError(
      `The database in ${path} belongs to user ${uid}, and this is user ${own}.`,
      { hint: `Start Windlass as that user, or change its owner: chown -R ${own} ${path}` },
    );
  }
  if (uid === 0) {
    const user = findPostgresUser()?.name ?? 'postgres';
    throw new CommandError(
      `The database in ${path} belongs to root, and Postgres does not run as root.`,
      { hint: `Change its owner to the user of Postgres: chown -R ${user} ${path}` },
    );
  }
  const version = await readFile(join(path, 'PG_VERSION'), 'utf8').catch(ifMissing(undefined));
  if (version === undefined) {
    throw new CommandError(`${path} is not a database: it contains files, but no PG_VERSION.`, {
      hint: 'Run: windlass restore FOLDER, with a new DATA_DIR that has the secrets.json of this one.',
    });
  }
  if (Number(version) !== major) {
    throw new CommandError(
      `The database in ${path} was made by PostgreSQL ${version.trim()}, and this is ${major}.`,
      {
        hint: 'Start the Windlass that made it and run its: windlass backup FOLDER. Then run this one: windlass restore FOLDER, with a new DATA_DIR that has the secrets.json of this one.',
      },
    );
  }
  // Restored backups often have a mode that Postgres refuses.
  if (mode & 0o077) await chmod(path, mode & 0o700);
}

/** Removes what killed starts left: an incomplete directory each, and an initdb that may still run. */
async function removeIncomplete(dataDir: string, user: SystemUser | undefined): Promise<void> {
  for (const entry of await readdir(dataDir, { withFileTypes: true })) {
    const { name } = entry;
    // A link would lead to what is not ours.
    if (!name.startsWith('postgres.init-') || !entry.isDirectory()) continue;
    const directory = await realpath(join(dataDir, name));
    await requireNoOrphans(directory, user);
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Stops the processes that still run on the directory. Throws CommandError if some cannot be stopped. */
export async function requireNoOrphans(
  directory: string,
  user: SystemUser | undefined,
): Promise<void> {
  if (await stopOrphans(directory, user)) return;
  throw new CommandError(`A Postgres that runs on ${directory} could not be stopped.`, {
    hint: 'Stop its processes, then start again.',
  });
}

async function isEmpty(path: string): Promise<boolean> {
  return (await readdir(path).catch(ifMissing([]))).length === 0;
}
