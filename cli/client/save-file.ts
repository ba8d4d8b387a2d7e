import { randomBytes } from 'node:crypto';
import { access, constants, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CommandError } from '../command-error.ts';
import { cannotWriteIn, ifNoPath } from './explain-file-error.ts';

/** Throws where saveFile() could not write the file, before the work whose result it is to be. */
export async function requireWritable(path: string): Promise<void> {
  const { target, isSpecial, present } = await findTarget(path);
  if (present?.isDirectory() || /[/\\]$/.test(path))
    throw new CommandError(`${path} is a folder here.`, { hint: 'Name a file.' });
  if (isSpecial) return access(target, constants.W_OK);
  const folder = dirname(target);
  if (!(await stat(folder).catch(ifNoPath))?.isDirectory())
    throw new CommandError(`There is no folder ${folder} here.`, { hint: 'Make it first.' });
  await access(folder, constants.W_OK).catch(cannotWriteIn(folder));
}

/**
 * Writes the bytes to a local file, whole or not at all, with the mode that it had. A link is followed. What is no
 * regular file, such as /dev/stdout, gets the bytes as they come.
 */
export async function saveFile(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  { signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  const { target, isSpecial, present } = await findTarget(path);
  if (isSpecial) {
    const file = await open(target, 'w');
    return pipeline(bytes, file.createWriteStream(), { signal });
  }
  // A name has at most 255 bytes.
  const begin = Buffer.from(basename(target)).subarray(0, 200).toString();
  const temporary = join(dirname(target), `.${begin}.${randomBytes(6).toString('hex')}`);
  const file = await open(temporary, 'wx', present?.mode);
  try {
    // The umask is for files that are new.
    if (present) await file.chmod(present.mode & 0o777);
    await pipeline(bytes, file.createWriteStream({ flush: true }), { signal });
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Where the bytes go: a link is followed. */
async function findTarget(path: string) {
  const present = await stat(path).catch(ifNoPath);
  const isSpecial = present !== undefined && !present.isFile();
  // There may be no path of /dev/stdout.
  const target = isSpecial ? path : await followLinks(path);
  return { target, isSpecial, present };
}

/** Does what realpath() does, also for a file that is missing. */
async function followLinks(path: string): Promise<string> {
  const found = await realpath(path).catch(ifNoPath);
  if (found !== undefined) return found;
  const next = await readlink(path).catch(ifNoPath);
  return next === undefined ? path : followLinks(resolve(await realpath(dirname(path)), next));
}
