import { WindlassError } from '../../shared/errors/errors.ts';
import type { Handler } from '../context.ts';
import { removeRemoteFile } from '../remote-files/remove-file.ts';
import { withSession } from '../ssh/reconnect.ts';

/** Removes a file of the session's host. One that is gone when this is tried again was removed by the first try. */
const removeFile: Handler<'remove-file'> = async context => {
  const { payload, signal } = context;
  let isRepeated = context.isRetaken;
  await withSession(context, async session => {
    await session.requireSftp(signal);
    try {
      await removeRemoteFile(session, payload.path, signal);
    } catch (error) {
      const isGone = error instanceof WindlassError && error.code === 'not_found';
      if (!isGone || !isRepeated) throw error;
    } finally {
      isRepeated = true;
    }
  });
  return { result: {} };
};

export default removeFile;
