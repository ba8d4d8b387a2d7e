import { randomBytes } from 'node:crypto';
import { access, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { errnoOf } from '../command-error.ts';

/** Throws where there is no folder for the file, before the work whose result it is to be. */
export const requireFolder = (path: string): Promise<void> => access(dirname(path));

/**
 * Writes the bytes to a local file, whole or not at all, with the mode that it had. A link is followed. What is no
 * regular file, such as /dev/stdout, gets the bytes as they come.
 */
export async function saveFile(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const present = await stat(path).catch(ignoreMissing);
  if (present && !present.isFile()) {
    const file = await open(path, 'w');
    return pipeline(bytes, file.createWriteStream());
  }
  const target = present ? await realpath(path) : path;
  // A name has at most 255 bytes.
  const begin = Buffer.from(basename(target)).subarray(0, 200).toString();
  const temporary = join(dirname(target), `.${begin}.${randomBytes(6).toString('hex')}`);
  const file = await open(temporary, 'wx', present?.mode);
  try {
    // The umask is for files that are new.
    if (present) await file.chmod(present.mode & 0o777);
    await pipeline(bytes, file.createWriteStream({ flush: true }));
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function ignoreMissing(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT') throw error;
}
