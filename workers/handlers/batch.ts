import { WindlassError } from '../../shared/errors/errors.ts';
import { folderOf } from '../../shared/jobs/payloads/batch.ts';
import { BatchAttempt } from '../batch/batch-attempt.ts';
import { followHost } from '../batch/polls.ts';
import type { Handler, JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { awaitDisk, endDiskWait } from '../runs/await-disk.ts';
import { directoryNotFound } from '../runs/directory-not-found.ts';
import { explainAccessDenied } from '../runs/run-errors.ts';
import {
  BATCH_RETRY_SECONDS,
  comeBackLater,
  findUnreachableSince,
  isUnreachable,
} from '../ssh/host-unreachable.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Submits a job to the batch system of the session's host exactly once, and follows it in many short attempts. */
const batch: Handler<'batch'> = async context => {
  const { job, payload } = context;
  // Even if the job ends now, its directory may be there, and the host's poller must remove it.
  if (job.runAt) await followHost(context.worker.database.db, context.sid);
  if (!job.batch) context.signal.throwIfAborted();
  const output = await context.output();
  if (!output.isDiskShort || wasCancelled(context)) await endDiskWait(context);
  // A connection ends it, and the home may be unreachable all the same.
  let { unreachableSince } = job;
  const attemptOnHost = async (session: RemoteSession) => {
    // Over a new connection it is read on from what is stored.
    await output.flush();
    const attempt = new BatchAttempt(context, session, output);
    return attempt.run().finally(() => {
      if (attempt.hasLooked) unreachableSince = null;
    });
  };
  const { code } = await withSession(context, attemptOnHost, {
    signal: () => (job.batch ? context.cleanupSignal : context.signal),
  }).catch(async (reason: unknown) => {
    // A job that is attempted again loses nothing by it.
    const error = await output.flush().then(
      () => reason,
      (refused: unknown) =>
        reason instanceof ReleaseJob && output.isForDisk(refused) ? reason : refused,
    );
    if (output.isForDisk(error) && !wasCancelled(context)) throw awaitDisk();
    if (job.batch && isUnreachable(error)) throw toLater(context, unreachableSince, error);
    // Before its directory is recorded it is not submitted.
    throw job.batch ? explainAccessDenied(context, error) : error;
  });
  if (code === 'cwd') throw directoryNotFound(folderOf(payload));
  return { result: { returncode: code } };
};

export default batch;

function toLater(context: JobContext, unreachableSince: Date | null, error: unknown): Error {
  const isCancelled = wasCancelled(context);
  // Whoever has cancelled it may never log in again.
  const since = isCancelled
    ? (unreachableSince ?? new Date())
    : findUnreachableSince(unreachableSince, error);
  return comeBackLater(since, BATCH_RETRY_SECONDS, () => unreachableTooLong(isCancelled));
}

function unreachableTooLong(isCancelled: boolean): WindlassError {
  if (isCancelled)
    return new WindlassError('cancelled', {
      detail:
        'Cancelled, but the host could not be reached for too long to end the job there, so that it may run on.',
      hint: 'Look on the host.',
    });
  return new WindlassError('outcome_unknown', {
    detail: 'the host could not be reached for too long.',
    hint: 'Look on the host what the job did before you submit it again.',
  });
}
