import type { Db } from '../../shared/database/connect.ts';
import { newId } from '../../shared/ids.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { type ClaimedRow, claimJobs } from '../../workers/engine/claim-jobs.ts';

type Claimant = Parameters<typeof claimJobs>[2];

/** claimJobs() of one job. */
export async function claimJob(
  db: Db,
  entry: QueueEntry,
  { token = newId(), ...claimant }: Claimant & { token?: string },
): Promise<ClaimedRow | undefined> {
  const [row] = await claimJobs(db, [{ ...entry, token }], claimant);
  return row;
}
