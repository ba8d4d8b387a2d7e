import { posix } from 'node:path';
import type ssh2 from 'ssh2';
import { invalid } from '../../shared/errors/errors.ts';
import { isDirectory, isLink, type Sftp, STATUS, statusOf } from './sftp-requests.ts';
import { isNoDirectory, isNotUtf8, noDirectory } from './write-errors.ts';

/** What is there, through links; undefined where there is nothing. */
export async function find({ sftp, request }: Sftp, path: string): Promise<ssh2.Stats | undefined> {
  return request('attributes', done => sftp.stat(path, done)).catch((error: unknown) => {
    if (statusOf(error) === STATUS.noSuchFile) return undefined;
    throw error;
  });
}

/** What is there, where it is a link the link itself; undefined where there is nothing, or nothing can be seen. */
export async function findLink(
  { sftp, request }: Sftp,
  path: string,
): Promise<ssh2.Stats | undefined> {
  return request('attributes', done => sftp.lstat(path, done)).catch((error: unknown) => {
    if (statusOf(error) !== undefined) return undefined;
    throw error;
  });
}

/**
 * Where a file is replaced or made. The directory of a link is not that of its file, which may be missing. With
 * `exclusive` none is followed: a link is something that is there already. Throws `invalid_input` where no text names
 * the file.
 */
export async function findTarget(channel: Sftp, given: string, { exclusive = false } = {}) {
  const present = await find(channel, given);
  const path = exclusive ? given : await followLinks(channel, given);
  // The host's bytes were decoded: such a path names another file, or none.
  if (path.includes('\ufffd')) throw isNotUtf8(path);
  return { present, path, directory: posix.dirname(path) };
}

/** A path below this directory. Not posix.join(): what is above a linked directory is not what the text says. */
export const pathIn = (directory: string, name: string) =>
  `${directory.replace(/\/$/, '')}/${name}`;

/** Where the file is that this path leads to, through all links: names of one file are the same. */
export async function realPath(channel: Sftp, given: string): Promise<string> {
  const { sftp, request } = channel;
  const path = await followLinks(channel, given);
  const directory = posix.dirname(path);
  const real = await request('path', done => sftp.realpath(directory, done)).catch(
    (error: unknown) => {
      if (statusOf(error) === undefined) throw error;
      return directory;
    },
  );
  return pathIn(real, posix.basename(path));
}

/** More than a kernel follows. */
const MAX_LINKS = 40;

/** The target of a link, which may be missing; without a link the path itself, though links may be on its way. */
async function followLinks(channel: Sftp, given: string): Promise<string> {
  const { sftp, request } = channel;
  let path = given;
  for (let count = 0; count < MAX_LINKS; count++) {
    const here = path;
    const found = await findLink(channel, here);
    if (!found || !isLink(found)) return path;
    const target = await request('path', done => sftp.readlink(here, done));
    path = target.startsWith('/') ? target : pathIn(posix.dirname(here), target);
  }
  throw invalid(`path: ${given} is a link that leads to itself.`, 'Give the path of a file.');
}

export async function remove({ sftp, act }: Sftp, path: string): Promise<void> {
  await act(done => sftp.unlink(path, done)).catch((error: unknown) => {
    if (statusOf(error) !== STATUS.noSuchFile) throw error;
  });
}

/** Makes a directory and those above it that are missing. Adds to `made` what it makes, from the highest. */
export async function makeDirectories(
  channel: Sftp,
  directory: string,
  made: string[],
): Promise<void> {
  const { sftp, act } = channel;
  const present = await find(channel, directory);
  if (present && !isDirectory(present)) throw isNoDirectory(directory);
  if (present) return;
  const above = posix.dirname(directory);
  // A host may say so of its root, too, which nothing is above of.
  if (above === directory) throw noDirectory(directory);
  await makeDirectories(channel, above, made);
  try {
    await act(done => sftp.mkdir(directory, done));
    made.push(directory);
  } catch (error) {
    // Another one made it meanwhile.
    if (!(await find(channel, directory))) throw error;
  }
}

/** Removes those directories that are empty, from the lowest. */
export async function removeDirectories({ sftp, act }: Sftp, made: string[]): Promise<void> {
  for (const directory of [...made].reverse())
    await act(done => sftp.rmdir(directory, done)).catch((error: unknown) => {
      if (statusOf(error) === undefined) throw error;
    });
}
