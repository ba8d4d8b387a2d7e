import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ServiceUser } from './embedded-postgres/service-user.ts';

/**
 * Atomic write of one line to a file that only this user (and root) can read: after a crash it has the old content or the
 * new. Written by hand: write-file-atomic does not sync the directory.
 */
export async function writeAtomically(
  path: string,
  text: string,
  user?: ServiceUser,
): Promise<void> {
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(`${text}\n`);
    if (user) await file.chown(user.uid, user.gid);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}
