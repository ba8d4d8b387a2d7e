import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { SystemUser } from '../../shared/process/system-users.ts';
import { CommandError } from '../command-error.ts';
import { canEnter, choosePostgresUser } from '../embedded-postgres/postgres-user.ts';
import { createDirectory } from './create-directory.ts';
import { explainDataDirError } from './explain-data-dir-error.ts';
import { closeToOthers, isOwnName, requireClosed, requireOwn } from './rights.ts';

/** Where root puts data that an unprivileged Postgres must reach. */
export const SYSTEM_DIR = '/var/lib/windlass';

interface ChosenDataDir {
  dataDir: string;
  /** One line for people, if the directory is not the expected one. */
  notice?: string;
}

interface DataDirOptions {
  /** The setting DATA_DIR, relative to the current directory. */
  given?: string;
  /** The directory of package.json. */
  checkout: string;
  /** Replaces SYSTEM_DIR in tests. */
  systemDir?: string;
  /** It is for the service, which takes its keys from there; not for a command beside it, such as a backup that root makes. */
  isStart?: boolean;
}

/**
 * Chooses the data directory and creates it. As root it is created with mode 0711, so that the user of Postgres can enter
 * it; call this before anything else is put there. Throws CommandError if a given directory cannot be used.
 */
export function chooseDataDir(options: DataDirOptions): ChosenDataDir {
  const { given, checkout } = options;
  const wanted = given ? resolve(given) : join(resolve(checkout), 'data');
  // Postgres writes it into a line of its lock file.
  if (/[\n\r\0]/.test(wanted)) throw new CommandError('DATA_DIR must not contain a line break.');
  try {
    const chosen = choose(wanted, options);
    if (options.isStart) requireOwn(chosen.dataDir);
    closeToOthers(chosen.dataDir);
    if (options.isStart) requireClosed(chosen.dataDir);
    return chosen;
  } catch (error) {
    throw explainDataDirError(error, wanted);
  }
}

/** Whether there is one of these that chooseDataDir() chooses, without making it. */
export function hasDataDir({ given, checkout, systemDir = SYSTEM_DIR }: DataDirOptions): boolean {
  if (given) return existsSync(given);
  return existsSync(join(checkout, 'data')) || existsSync(join(systemDir, nameCheckout(checkout)));
}

function choose(wanted: string, options: DataDirOptions): ChosenDataDir {
  const { given, checkout, systemDir = SYSTEM_DIR } = options;
  if (process.geteuid?.() !== 0) {
    createDirectory(wanted, 0o700);
    return { dataDir: wanted };
  }
  const user = choosePostgresUser(join(wanted, 'postgres'));
  if (!user || makeEnterable(wanted, user)) return { dataDir: wanted };
  if (given) {
    throw new CommandError(
      `DATA_DIR ${wanted} cannot be reached by ${user.name}, the user that Postgres runs as (it refuses root).`,
      { hint: hintFor(wanted, user, systemDir) },
    );
  }
  const dataDir = join(systemDir, nameCheckout(checkout));
  const other = choosePostgresUser(join(dataDir, 'postgres')) ?? user;
  if (!makeEnterable(dataDir, other)) {
    throw new CommandError(
      `${dataDir} cannot be reached by ${other.name}, the user that Postgres runs as.`,
      { hint: `Set DATA_DIR to a directory below one that ${other.name} can enter.` },
    );
  }
  return {
    dataDir,
    notice: `Data is kept in ${dataDir}: Postgres runs as ${other.name}, who cannot reach ${wanted}.`,
  };
}

/** Where its own mode alone is in the way, root may open it, or its owner use it. */
function hintFor(directory: string, user: SystemUser, systemDir: string): string {
  const elsewhere = `ame a directory below one that ${user.name} can enter, such as ${systemDir}/data.`;
  if (!existsSync(directory) || !canEnter(user, dirname(directory))) return `N${elsewhere}`;
  if (statSync(directory).uid !== 0)
    return `Run it as the user that owns ${directory}, or n${elsewhere}`;
  return `Run: chmod a+x '${directory}', or n${elsewhere}`;
}

/** Creates the directory if the user can reach its parent. False if the user cannot enter it. */
function makeEnterable(directory: string, user: SystemUser): boolean {
  const existing = findExisting(directory);
  if (existing !== directory) {
    if (!canEnter(user, existing)) return false;
    createDirectory(directory, 0o711);
    return canEnter(user, directory);
  }
  createDirectory(directory, 0o711);
  if (canEnter(user, directory)) return true;
  // Only a directory of Windlass, perhaps with the keys alone for a restore, or an empty one (`mktemp -d`), may be opened.
  if (!canEnter(user, dirname(directory)) || !isOurs(directory)) return false;
  chmodSync(directory, (statSync(directory).mode & 0o7777) | 0o011);
  return canEnter(user, directory);
}

function isOurs(directory: string): boolean {
  const names = readdirSync(directory);
  return statSync(directory).uid === 0 && (names.every(isOwnName) || names.includes('postgres'));
}

function findExisting(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) ? path : findExisting(dirname(path));
}

/** A name that is unique to the path of the checkout. */
function nameCheckout(checkout: string): string {
  const path = resolve(checkout);
  const name = basename(path).replace(/[^\w.-]/g, '_') || 'root';
  return `${name}-${createHash('sha256').update(path).digest('hex').slice(0, 8)}`;
}
