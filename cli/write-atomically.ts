import { lstat, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { SystemUser } from '../shared/process/system-users.ts';
import { syncDirectory } from '../shared/storage/sync-directory.ts';

/**
 * Atomic write of one line to a file that only this user (and root) can read: after a crash it has the old content or the
 * new.
 */
export async function writeAtomically(
  path: string,
  text: string,
  user?: SystemUser,
): Promise<void> {
  const temporary = `${path}.tmp`;
  // Root writes for the service of another user, too.
  const owner = user ?? (await ownerOf(path));
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(`${text}\n`);
    if (owner) await file.chown(owner.uid, owner.gid);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** The owner of the file that is there, where we are root. */
async function ownerOf(path: string): Promise<{ uid: number; gid: number } | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const { uid, gid } = (await lstat(path).catch(() => undefined)) ?? {};
  return uid === undefined || gid === undefined ? undefined : { uid, gid };
}
