import type { JobKind, Payload } from '../../shared/jobs/catalog.ts';
import type { JobContext, WorkerContext } from '../context.ts';
import { openOutput } from '../output/open-output.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import type { ClaimedRow } from './claim-jobs.ts';
import type { HeldClaim } from './held-claims.ts';
import { updateLeased, updateLeasedVisibly } from './leased-updates.ts';
import { DATABASE, retry } from './retry.ts';

/** What the handler of a claimed job works with. `parts` are the attempt's. */
export function createJobContext(
  worker: WorkerContext,
  row: ClaimedRow,
  claim: HeldClaim,
  parts: Pick<JobContext, 'progress' | 'withFailure'>,
): JobContext {
  const { signals, log } = claim;
  let output: Promise<OutputWriter> | undefined;
  return {
    worker,
    job: row,
    // Attempt.work() checks both, which may fail: the row may be from a newer version.
    sid: row.session,
    payload: row.payload as Payload<JobKind>,
    token: claim.token,
    log,
    signal: signals.signal,
    cleanupSignal: signals.cleanupSignal,
    pin: () => signals.pin(),
    unpin: () => signals.unpin(),
    assertLeased: since => worker.claims.assertLeased(claim, since),
    update: async set => {
      await retry(() => updateLeased(worker.database.db, claim, set), DATABASE);
      Object.assign(row, set);
    },
    updateVisibly: async set => {
      await retry(() => updateLeasedVisibly(worker.database.db, claim, set), DATABASE);
      Object.assign(row, set);
      worker.notifications.publish('job', row.id);
    },
    output: () => {
      output ??= openOutput(worker, row, claim);
      return output;
    },
    ...parts,
  };
}
