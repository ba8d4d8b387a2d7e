import type { RemoteSession } from '../ssh/remote-session.ts';
import { findTarget, pathIn, remove } from './sftp-paths.ts';
import { withSftp } from './sftp-requests.ts';

interface Temporaries {
  /** The path of the file that was to be written. */
  path: string;
  /** What the names of its temporary files end with: see nameTemporaries(). */
  ends: string[];
  signal: AbortSignal;
}

/** The path of a temporary file. */
export const beside = (directory: string, end: string) => pathIn(directory, `.windlass-${end}`);

/** Removes the temporary files of a write: a rename that comes late then finds none. */
export async function removeTemporaries(
  session: RemoteSession,
  { path, ends, signal }: Temporaries,
): Promise<void> {
  await withSftp(session, signal, async channel => {
    const { directory } = await findTarget(channel, path);
    await Promise.all(ends.map(end => remove(channel, beside(directory, end))));
  });
}
