import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ServiceUser } from './embedded-postgres/service-user.ts';

/**
 * Writes one line to a file that only this user (and root) may read. Dying at any moment leaves the
 * old content or the new.
 */
export async function writeAtomically({
  path,
  text,
  user,
}: {
  path: string;
  text: string;
  user?: ServiceUser;
}): Promise<void> {
  const unfinished = `${path}.tmp`;
  await rm(unfinished, { force: true });
  const file = await open(unfinished, 'wx', 0o600);
  try {
    await file.writeFile(`${text}\n`);
    if (user) await file.chown(user.uid, user.gid);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory outlast a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
}
