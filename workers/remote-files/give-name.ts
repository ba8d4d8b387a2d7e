import { WindlassError } from '../../shared/errors/errors.ts';
import { findLink, remove } from './sftp-paths.ts';
import { isUnsupported, type Sftp, statusOf } from './sftp-requests.ts';
import { isThere } from './write-errors.ts';

/** Gives the temporary file its name at once. Throws `precondition_failed` if `exclusive` and the name is taken. */
export async function giveName(
  channel: Sftp,
  temporary: string,
  { path, exclusive }: { path: string; exclusive: boolean },
): Promise<void> {
  const { sftp, act } = channel;
  if (!exclusive) {
    // The rename of the draft does not replace a file.
    await act(done => sftp.ext_openssh_rename(temporary, path, done)).catch(
      explainUnsupported('posix-rename@openssh.com'),
    );
    return;
  }
  // A link is made only where there is no such name.
  try {
    await act(done => sftp.ext_openssh_hardlink(temporary, path, done));
  } catch (error) {
    if (await findLink(channel, path)) throw isThere(path);
    return explainUnsupported('hardlink@openssh.com')(error);
  }
  await remove(channel, temporary).catch((error: unknown) => {
    // The file is there, whole; what is written to the other name goes to it too.
    if (statusOf(error) === undefined) throw error;
  });
}

const explainUnsupported = (extension: string) => (error: unknown) => {
  if (!isUnsupported(error)) throw error;
  throw new WindlassError('sftp_unavailable', {
    detail: `the host's SFTP server lacks ${extension}, by which a file gets its name at once.`,
    hint: `Have ${extension} allowed there: OpenSSH's sftp-server has it, unless -P or -p leaves it out.`,
  });
};
