import { WindlassError } from '../../shared/errors/errors.ts';
import type { Handler } from '../context.ts';
import { expectState } from '../remote-files/expect-state.ts';
import { recordIntent } from '../remote-files/record-intent.ts';
import { removeRemoteFile } from '../remote-files/remove-file.ts';
import { withSession } from '../ssh/reconnect.ts';

/** Removes a file of the session's host. If a retry finds it gone, the first try removed it. */
const removeFile: Handler<'remove-file'> = async context => {
  const { job, payload, signal } = context;
  const options = { path: payload.path, confirm: () => recordIntent(context), signal };
  await withSession(context, async session => {
    await session.requireSftp(signal);
    const { path, ifMatch } = payload;
    const mayBeGone = job.runAt !== null;
    const expected = ifMatch && (await expectState(context, session, { path, ifMatch, mayBeGone }));
    try {
      await removeRemoteFile(session, { ...options, expected });
    } catch (error) {
      const isGone = error instanceof WindlassError && error.code === 'not_found';
      if (!isGone || !job.runAt) throw error;
    }
  });
  return { result: {} };
};

export default removeFile;
