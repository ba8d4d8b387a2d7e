import type { AttemptContext, WorkerContext } from '../context.ts';
import { openOutput } from '../output/open-output.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import type { ClaimedRow } from './claim-jobs.ts';
import type { HeldClaim } from './held-claims.ts';
import { updateLeased, updateLeasedVisibly } from './leased-updates.ts';
import { DATABASE, retry } from './retry.ts';

/** What an attempt at a claimed job works with. `parts` are the attempt's. */
export function createAttemptContext(
  worker: WorkerContext,
  row: ClaimedRow,
  claim: HeldClaim,
  parts: Pick<AttemptContext, 'progress' | 'withFailure'>,
): AttemptContext {
  const { signals, log } = claim;
  let output: Promise<OutputWriter> | undefined;
  return {
    worker,
    job: row,
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
