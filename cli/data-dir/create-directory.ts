import { accessSync, chmodSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from '../command-error.ts';

/** Creates missing directories with exactly this mode, regardless of the umask. */
export function createDirectory(path: string, mode: number): void {
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
