import { chmod, lchown, lstat, mkdir, opendir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { isSharedFolder, SHARED_MODES, SHARED_ROOT } from '../../shared/storage/shared-folder.ts';

/** What is made in it is the group's, too. */
const GROUP_FOLDER = 0o2000 | SHARED_MODES.folder;

/**
 * Lets a group use all objects, present and future. The root comes last, so that an interrupted start is repeated, and
 * later starts need not look at the rest.
 */
export async function shareObjects(path: string, gid: number): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  // It may be a link to another disk.
  const root = await realpath(path);
  if (isSharedFolder(root) && (await lstat(root)).gid === gid) return;
  // Nobody else puts links in the way meanwhile.
  await chmod(root, 0o700);
  for (const name of ['objects', 'incoming']) {
    await mkdir(join(root, name), { recursive: true, mode: 0o700 });
    await share(join(root, name), gid);
  }
  await give(root, gid, SHARED_ROOT);
}

async function share(folder: string, gid: number): Promise<void> {
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await share(path, gid);
    else if (entry.isFile()) await give(path, gid, SHARED_MODES.file);
  }
  await give(folder, gid, GROUP_FOLDER);
}

async function give(path: string, gid: number, mode: number): Promise<void> {
  await lchown(path, (await lstat(path)).uid, gid);
  await chmod(path, mode);
}
