import { WindlassError } from '../../shared/errors/errors.ts';
import type { Handler } from '../context.ts';
import { statFile } from '../remote-files/compare-file.ts';
import { recordIntent } from '../remote-files/record-intent.ts';
import { removeRemoteFile, toRemoveError } from '../remote-files/remove-file.ts';
import { requireState } from '../remote-files/require-state.ts';
import { withSession } from '../ssh/reconnect.ts';

/** Removes a file of the session's host. If a retry finds it gone, the first try removed it. */
const removeFile: Handler<'remove-file'> = async context => {
  const { job, payload, signal } = context;
  const options = { path: payload.path, confirm: () => recordIntent(context), signal };
  await withSession(context, async session => {
    await session.requireSftp(signal);
    const { path, ifMatch } = payload;
    const mayBeGone = job.runAt !== null;
    // SFTP tells the state before the tag is read and at the end, so a change in between is seen.
    const fail = (error: unknown) => {
      throw toRemoveError(error, path);
    };
    const unchanged = ifMatch && (await statFile(session, path, signal).catch(fail));
    if (ifMatch) await requireState(session, { path, ifMatch, mayBeGone, signal });
    try {
      await removeRemoteFile(session, { ...options, unchanged });
    } catch (error) {
      const isGone = error instanceof WindlassError && error.code === 'not_found';
      if (!isGone || !job.runAt) throw error;
    }
  });
  return { result: {} };
};

export default removeFile;
