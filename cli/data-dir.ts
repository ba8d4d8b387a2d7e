import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { findPostgresUser } from '../shared/process/system-users.ts';
import { isSharedFolder } from '../shared/storage/shared-folder.ts';
import { CommandError, errnoOf } from './command-error.ts';
import { canEnter, chooseServiceUser, type ServiceUser } from './embedded-postgres/service-user.ts';

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
  /** The folder of package.json. */
  checkout: string;
  /** Replaces SYSTEM_DIR in tests. */
  systemDir?: string;
  /** Of the service, which takes its keys from there; not a command beside it, such as a backup that root makes. */
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
    throw translateError(error, wanted);
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
  const user = chooseServiceUser(join(wanted, 'postgres'));
  if (!user || makeEnterable(wanted, user)) return { dataDir: wanted };
  if (given) {
    throw new CommandError(
      `DATA_DIR ${wanted} cannot be reached by ${user.name}, the user that Postgres runs as (it refuses root).`,
      {
        hint: `Name a directory below one that ${user.name} can enter, such as ${systemDir}/data.`,
      },
    );
  }
  const dataDir = join(systemDir, nameCheckout(checkout));
  const other = chooseServiceUser(join(dataDir, 'postgres')) ?? user;
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

/** Creates the directory if the user can reach its parent. False if the user cannot enter it. */
function makeEnterable(directory: string, user: ServiceUser): boolean {
  const existing = findExisting(directory);
  if (existing !== directory) {
    if (!canEnter(user, existing)) return false;
    createDirectory(directory, 0o711);
    return canEnter(user, directory);
  }
  createDirectory(directory, 0o711);
  if (canEnter(user, directory)) return true;
  // Only a directory of Windlass, or an empty one (`mktemp -d`), may be made accessible.
  if (!canEnter(user, dirname(directory)) || !isOurs(directory)) return false;
  chmodSync(directory, (statSync(directory).mode & 0o7777) | 0o011);
  return canEnter(user, directory);
}

/** What Windlass puts into its data directory, also under names of passage such as `postgres.init-…`. */
const OWN = /^(lock|objects|postgres|secrets\.json)(\.|$)/;

/**
 * Takes from others what they may do with what Windlass keeps, and with the directory itself where nothing else is in it: it
 * may have been made before, or restored, with any mode. Whoever may write there could put other keys in the place of ours.
 */
function closeToOthers(directory: string): void {
  const names = readdirSync(directory);
  for (const name of names.filter(one => OWN.test(one))) {
    const path = join(directory, name);
    // The objects may be shared with the API's account: see service-users.ts.
    restrict(path, name === 'objects' && isSharedFolder(path) ? 0o007 : 0o077);
  }
  // Its user must be able to enter: Postgres runs as another one where we are root.
  if (names.every(name => OWN.test(name))) restrict(directory, 0o066);
}

/**
 * Who owns the folder, or what is there under a name of Windlass, chooses its keys and its passwords and reads what is stored. Root is
 * everybody's master anyhow.
 */
function requireOwn(directory: string): void {
  const own = process.geteuid?.();
  if (own === undefined) return;
  // Where others may write, they may have made the folder of the database, too: its owner says nothing.
  const isOpen = (statSync(directory).mode & 0o022) !== 0;
  const user = isOpen ? findPostgresUser() : chooseServiceUser(join(directory, 'postgres'));
  const postgres = own === 0 ? user?.uid : undefined;
  const require = (path: string, isPostgres = false) => {
    // A link, and what it leads to.
    for (const found of [lstatSync, statSync].map(look => look(path, { throwIfNoEntry: false }))) {
      if (!found || found.uid === own || found.uid === 0) continue;
      if (isPostgres && found.uid === postgres) continue;
      throw new CommandError(
        `${path} belongs to another user (${found.uid}), who could put other keys in the place of this service's.`,
        { hint: 'Start the service as that user, or use another DATA_DIR.' },
      );
    }
  };
  require(directory);
  for (const name of readdirSync(directory).filter(one => OWN.test(one)))
    require(join(directory, name), name.startsWith('postgres'));
  const objects = join(directory, 'objects');
  if (!statSync(objects, { throwIfNoEntry: false })?.isDirectory()) return;
  for (const name of ['objects', 'incoming']) require(join(objects, name));
}

/** Where other things are in it its mode stays, and then nobody else may replace what is in it. */
function requireClosed(directory: string): void {
  if (readdirSync(directory).every(name => OWN.test(name))) return;
  const { gid, mode } = statSync(directory);
  if ((mode & 0o1000) !== 0) return;
  // The user's own group is often the user's alone.
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  const isOfGroup = (mode & 0o020) !== 0 && !groups.includes(gid);
  if (!isOfGroup && (mode & 0o002) === 0) return;
  const who = mode & 0o002 ? 'Every user' : `The group ${gid}`;
  throw new CommandError(`${who} may write to ${directory}, where other things are, too.`, {
    hint: `Use a DATA_DIR of its own, or run: chmod go-w '${directory}'`,
  });
}

function restrict(path: string, taken: number): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || found.isSymbolicLink() || (found.mode & taken) === 0) return;
  // Somebody else's to change, such as a volume that root made for this user.
  if (process.geteuid?.() !== 0 && found.uid !== process.geteuid?.()) return;
  chmodSync(path, found.mode & 0o7777 & ~taken);
}

function isOurs(directory: string): boolean {
  const names = readdirSync(directory);
  return statSync(directory).uid === 0 && (names.length === 0 || names.includes('postgres'));
}

function findExisting(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) ? path : findExisting(dirname(path));
}

/** Creates missing directories with exactly this mode, regardless of the umask. */
function createDirectory(path: string, mode: number): void {
  makeMissing(path, mode);
  accessSync(path, constants.W_OK | constants.X_OK);
}

/**
 * One by one: `recursive` of node 20 and 24 tries for ever below /proc, and says of a read-only file system that there is no such
 * directory.
 */
function makeMissing(path: string, mode: number): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  makeMissing(dirname(path), mode);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another start made it meanwhile.
    if (errnoOf(error) === 'EEXIST' && statSync(path, { throwIfNoEntry: false })?.isDirectory())
      return;
    throw error;
  }
  chmodSync(path, mode);
}

const REASONS: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EROFS: 'it is on a read-only file system',
  EEXIST: 'it is a file',
  ENOTDIR: 'it or a part of its path is a file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENAMETOOLONG: 'its name is too long',
  // Of a folder that is there, such as /proc.
  ENOENT: 'no folder can be made there',
};

/** In one line why a data directory cannot be used; another error as it is. */
export function translateError(error: unknown, wanted: string): unknown {
  const reason = REASONS[errnoOf(error) ?? ''];
  if (!reason) return error;
  const path = error instanceof Error && 'path' in error ? String(error.path) : wanted;
  return new CommandError(`The data directory ${path} cannot be used: ${reason}.`, {
    hint: 'Set DATA_DIR to a directory that this user can write.',
    cause: error,
  });
}

/** A name that is unique to the path of the checkout. */
function nameCheckout(checkout: string): string {
  const path = resolve(checkout);
  const name = basename(path).replace(/[^\w.-]/g, '_') || 'root';
  return `${name}-${createHash('sha256').update(path).digest('hex').slice(0, 8)}`;
}
