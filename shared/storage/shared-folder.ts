import { statSync } from 'node:fs';

/** The mode of what one user alone uses. */
export const OWN_MODES = { file: 0o600, folder: 0o700 };
/** The mode of what two users share by a group. */
export const SHARED_MODES = { file: 0o640, folder: 0o770 };
/** The mode of the root, whose folders the group cannot replace. New entries of a folder get its group (S_ISGID). */
export const SHARED_ROOT = 0o2750;

/** Whether the folder is shared with a group. */
export function isSharedFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & SHARED_ROOT) === SHARED_ROOT;
}
