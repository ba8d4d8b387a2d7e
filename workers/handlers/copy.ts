import { WindlassError } from '../../shared/errors/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { assertUserStorage } from '../../shared/quotas/user-storage.ts';
import { assertFreeSpace } from '../../shared/storage/free-space.ts';
import { keepUploadAlive } from '../../shared/uploads/keep-upload-alive.ts';
import { PartMeter, partTooLarge } from '../../shared/uploads/part-meter.ts';
import { commitPart } from '../../shared/uploads/uploads.ts';
import type { Handler, JobContext } from '../context.ts';
import { openRemoteFile } from '../remote-files/read-file.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Milliseconds between two reports of progress. */
const REPORT_MS = 500;

/**
 * Copies a file of the session's host into the store as a part of an upload, as it was read. After a lost link or
 * worker it starts over with another object; the part appears with the job's end.
 */
const copy: Handler<'copy'> = async context => {
  const { worker, payload } = context;
  const { upload, file, part } = payload;
  const { config } = worker;
  const stopKeeping = await keepUploadAlive(worker, { uid: upload }, config.UPLOAD_IDLE_TIMEOUT);
  try {
    const stored = await withSession(context, session => copyOnce(context, session));
    const { size, digest } = stored;
    return {
      result: { size, digest },
      stored: [stored.object],
      promote: tx => commitPart(tx, { upload, file, part, ...stored }, config),
    };
  } finally {
    stopKeeping();
  }
};

export default copy;

async function copyOnce(context: JobContext<'copy'>, session: RemoteSession) {
  const { worker, job, payload, signal } = context;
  const object = newObjectKey('uploads', payload.upload);
  const { size, bytes } = await openRemoteFile(session, { path: payload.path, signal });
  const limit = worker.config.LIMIT_PART_BYTES;
  const meter = new PartMeter({ limit });
  // Both may fail before the store listens.
  meter.on('error', () => {}).once('close', () => bytes.destroy());
  bytes.on('error', error => meter.destroy(error)).pipe(meter);
  const report = setInterval(() => {
    if (size > 0) context.progress(meter.size / size, 'Copying.');
  }, REPORT_MS);
  try {
    if (size > limit) throw partTooLarge(limit);
    const { config, database, objects } = worker;
    await assertFreeSpace(objects, { added: size, limit: config.LIMIT_FREE_BYTES });
    const charge = { user: job.owner, added: size, limit: config.LIMIT_USER_BYTES };
    await assertUserStorage(database.db, charge);
    await worker.objects.put(object, meter, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw meter.errored instanceof WindlassError ? meter.errored : error;
  } finally {
    clearInterval(report);
    meter.destroy();
  }
  return { object, size: meter.size, digest: meter.digest };
}
