import { pipeline } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import { PartMeter } from '../../shared/uploads/part-meter.ts';
import type { Handler, JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { isWritten } from '../remote-files/compare-file.ts';
import { expectState } from '../remote-files/expect-state.ts';
import { nameTemporaries } from '../remote-files/name-temporaries.ts';
import { recordIntent } from '../remote-files/record-intent.ts';
import { removeTemporaries } from '../remote-files/remove-temporaries.ts';
import { toWriteError } from '../remote-files/write-errors.ts';
import { CLEANUP_MS, writeRemoteFile } from '../remote-files/write-file.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Writes stored content to a file of the session's host; starts over after a lost link or worker. */
const writeFile: Handler<'write-file'> = async context => {
  const { worker, payload } = context;
  let tries = 0;
  const result = await withSession(context, session => writeOnce(context, session, tries++)).catch(
    async (error: unknown) => {
      if (wasCancelled(context) && context.job.runAt) await removeLeft(context);
      throw error;
    },
  );
  // Not to be promoted, which a cancel would refuse: the file is there.
  return { result, after: () => scheduleDeletion(worker.database.db, [payload.object]) };
};

export default writeFile;

/**
 * Before a cancelled write ends, a rename that may come late over a lost connection is to find no temporary file: it would
 * replace what is written next. Throws ReleaseJob while the host is unreachable, and `cancelled` where it stays unreachable.
 */
async function removeLeft(context: JobContext<'write-file'>): Promise<void> {
  const { job, payload, log, cleanupSignal: signal } = context;
  const { path, object } = payload;
  // As the next attempt would.
  const { stale: ends } = nameTemporaries({ id: job.id, epoch: job.epoch + 1, object }, 0);
  try {
    const remove = (session: RemoteSession) =>
      limitTime(signal, CLEANUP_MS, limited =>
        removeTemporaries(session, { path, ends, signal: limited }),
      );
    await withSession(context, remove, { signal: () => signal });
  } catch (error) {
    if (error instanceof ReleaseJob) throw error;
    log.info({ err: error }, 'the temporary file of a cancelled write could not be removed');
    throw new WindlassError('cancelled', {
      detail: `Cancelled, but the host could not be asked to forget it: ${path} may still be written.`,
    });
  }
}

async function writeOnce(context: JobContext<'write-file'>, session: RemoteSession, tries: number) {
  const { worker, job, payload, signal, cleanupSignal } = context;
  const { path, object, size, digest, mode, parents, exclusive, ifMatch } = payload;
  await session.requireSftp(signal);
  const mayBeNamed = job.runAt !== null;
  const written = { path, size, digest, signal };
  const fail = (error: unknown) => {
    throw toWriteError(error, path);
  };
  if (ifMatch && mayBeNamed && (await isWritten(session, written).catch(fail)))
    return { created: false };
  const expected = ifMatch && (await expectState(context, session, { path, ifMatch }));
  const stored = await worker.objects.get(object, { signal });
  const meter = new PartMeter({ limit: size, expected: Buffer.from(digest, 'base64') });
  // Its error reaches whoever reads the meter.
  pipeline(stored, meter, () => {});
  return writeRemoteFile(session, {
    path,
    bytes: meter,
    size,
    digest,
    mode,
    parents,
    exclusive,
    signal,
    cleanupSignal,
    mayBeNamed,
    expected,
    ...nameTemporaries({ ...job, object }, tries),
    // Another worker may have taken the job over, and have been told of its end.
    confirm: () => recordIntent(context),
  });
}
