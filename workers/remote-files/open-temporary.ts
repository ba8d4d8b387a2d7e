import type ssh2 from 'ssh2';
import { find, makeDirectories, remove } from './sftp-paths.ts';
import { type Sftp, STATUS, statusOf } from './sftp-requests.ts';
import { noDirectory, takesNoFiles } from './write-errors.ts';

/** So often other writes may take a directory away between two requests. */
const MAX_TRIES = 10;

interface TemporaryFile {
  directory: string;
  /** The path of the temporary file. */
  temporary: string;
  /** Those that earlier tries may have left. */
  stale: string[];
  /** Makes the directories that are missing. */
  parents: boolean;
  /** What it has made of these, from the highest. */
  made: string[];
  /** By default that of the file which is replaced, or the account's. */
  mode?: number;
  /** The file that is replaced. */
  present?: ssh2.Stats;
}

/**
 * A handle of a new temporary file. With `parents` it starts over where a directory is gone again: a write that is refused
 * removes those that it has made, and SFTP tells nobody whether another one has begun to use them.
 */
export async function openTemporary(channel: Sftp, file: TemporaryFile): Promise<Buffer> {
  const { sftp, request } = channel;
  const { directory, temporary, parents, mode, present } = file;
  // Private until it has its mode and group; a new one gets the account's at once.
  const attributes = (mode ?? present?.mode) === undefined ? {} : { mode: 0o600 };
  for (let tries = 1; ; tries++) {
    try {
      await prepareDirectory(channel, file);
      // Only a new one: others who may write there may have put a link, or a file that they can read.
      return await request('handle', done => sftp.open(temporary, 'wx', attributes, done));
    } catch (error) {
      if (statusOf(error) !== STATUS.noSuchFile) throw error;
      if (parents && tries < MAX_TRIES) continue;
      throw (await find(channel, directory)) ? takesNoFiles(directory) : error;
    }
  }
}

/** Has the directory of a file, without temporary files of earlier tries. */
export async function prepareDirectory(
  channel: Sftp,
  { directory, stale, parents, made }: TemporaryFile,
): Promise<void> {
  if (parents) await makeDirectories(channel, directory, made);
  else if (!(await find(channel, directory))) throw noDirectory(directory);
  // All at once: each is asked for, though hardly one is there.
  await Promise.all(stale.map(path => remove(channel, path)));
}
