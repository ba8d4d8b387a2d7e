import { failureLevel } from '../../shared/database/failure-level.ts';
import { writeOrLog } from '../../shared/database/write-or-log.ts';
import { newId } from '../../shared/ids.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import type { Handler, WorkerContext } from '../context.ts';
import { Attempt } from './attempt.ts';
import type { Claim } from './claim.ts';
import { deferUnsupported } from './claim-jobs.ts';
import { JobSignals } from './job-signals.ts';

/** Claims the job that a queue entry names and runs it; false where it could not be claimed or had ended. Never throws. */
export async function runJob(
  worker: WorkerContext,
  entry: QueueEntry,
  handlers: Map<JobKind, Handler<JobKind>>,
): Promise<boolean> {
  const claim: Claim = { id: entry.id, token: newId() };
  const sentAt = performance.now();
  const row = await worker.groups.claim(entry, claim.token).catch((error: unknown) => {
    worker.claims.abandoned.add(claim);
    // The dispatcher looks again in 15 s.
    worker.log[failureLevel(error)]({ err: error, job: entry.id }, 'a job could not be claimed');
    return undefined;
  });
  if (!row) {
    const deferred = deferUnsupported(worker.database.db, entry);
    await writeOrLog(worker.log, 'deferring a job of a newer release', deferred);
    return false;
  }
  const ended = worker.claims.ends.find(row.id);
  if (ended?.ending) {
    worker.claims.abandoned.add(claim);
    return false;
  }
  // The command is then not requested again: its host has forgotten the run.
  Object.assign(row, ended?.run);
  const log = worker.log.child({
    job: row.id,
    kind: row.kind,
    owner: row.owner,
    host: row.host ?? undefined,
    requestId: row.requestId ?? undefined,
  });
  worker.metrics.claimed(row);
  log.debug({ epoch: row.epoch, consecutiveLosses: row.consecutiveLosses }, 'job claimed');
  // A job that ends within 100 ms is published once.
  worker.notifications.publishSoon('job', row.id);
  const signals = new JobSignals(worker.stopping);
  if (row.cancelRequested) signals.cancel();
  const attempt = new Attempt(worker, row, worker.claims.track(claim, { sentAt, signals, log }));
  try {
    await attempt.succeed(await attempt.work(handlers));
  } catch (error) {
    await attempt.fail(error).catch((later: unknown) => {
      log.error({ err: later }, 'a job could not be ended; its claim is abandoned');
      worker.claims.abandoned.add(claim);
    });
  } finally {
    attempt.close();
  }
  return true;
}
