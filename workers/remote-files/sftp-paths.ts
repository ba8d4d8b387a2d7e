import { posix } from 'node:path';
import type ssh2 from 'ssh2';
import { invalid } from '../../shared/errors/errors.ts';
import { isDirectory, type Sftp, STATUS, statusOf } from './sftp-requests.ts';
import { isNoDirectory } from './write-errors.ts';

/** What is there, through links; undefined where there is nothing. */
export async function find({ sftp, request }: Sftp, path: string): Promise<ssh2.Stats | undefined> {
  return request<ssh2.Stats>(done => sftp.stat(path, done)).catch((error: unknown) => {
    if (statusOf(error) === STATUS.noSuchFile) return undefined;
    throw error;
  });
}

/** The directory of a link is not that of its file, which may be missing. */
export async function findPlace(channel: Sftp, given: string) {
  const { sftp, request } = channel;
  const present = await find(channel, given);
  const path = present
    ? await request<string>(done => sftp.realpath(given, done))
    : await followLinks(channel, given);
  return { present, path, directory: posix.dirname(path) };
}

/** More than a kernel follows. */
const MAX_LINKS = 40;

/** The target of a link to a missing file; without a link the path itself. */
async function followLinks({ sftp, request }: Sftp, given: string): Promise<string> {
  let path = given;
  for (let count = 0; count < MAX_LINKS; count++) {
    const link = path;
    const target = await request<string>(done => sftp.readlink(link, done)).catch(
      (error: unknown) => {
        if (statusOf(error) !== undefined) return undefined;
        throw error;
      },
    );
    if (target === undefined) return path;
    // A directory on the way may be a link, too: then `..` leads elsewhere.
    const directory = await request<string>(done => sftp.realpath(posix.dirname(link), done));
    path = target.startsWith('/') ? target : `${directory}/${target}`;
  }
  throw invalid(`path: ${given} is a link that leads to itself.`, 'Give the path of a file.');
}

export async function remove({ sftp, act }: Sftp, path: string): Promise<void> {
  await act(done => sftp.unlink(path, done)).catch((error: unknown) => {
    if (statusOf(error) !== STATUS.noSuchFile) throw error;
  });
}

export async function makeDirectories(channel: Sftp, directory: string): Promise<void> {
  const { sftp, act } = channel;
  const present = await find(channel, directory);
  if (present && !isDirectory(present)) throw isNoDirectory(directory);
  if (present) return;
  await makeDirectories(channel, posix.dirname(directory));
  await act(done => sftp.mkdir(directory, done)).catch(async (error: unknown) => {
    // Another one made it meanwhile.
    if (!(await find(channel, directory))) throw error;
  });
}
