import { assertUserStorage } from '../../shared/quotas/user-storage.ts';
import type { WorkerContext } from '../context.ts';
import type { ClaimedRow } from '../engine/claim-jobs.ts';
import type { HeldClaim } from '../engine/held-claims.ts';
import { OutputRoom } from './output-room.ts';
import { OutputWriter } from './output-writer.ts';

/** Opens the output of a job just claimed where the last attempt left it. */
export async function openOutput(
  { config, database, objects, notifications, freeSpace }: WorkerContext,
  row: ClaimedRow,
  claim: HeldClaim,
): Promise<OutputWriter> {
  const charge = { user: row.owner, added: 0, limit: config.LIMIT_USER_BYTES };
  const room = await OutputRoom.open({
    assertUser: () => assertUserStorage(database.db, charge),
    assertDisk: () => freeSpace.assertFree(),
  });
  return OutputWriter.open(
    {
      database,
      objects,
      onStored: () => notifications.publish('job', row.id),
      room,
      over: claim.signals.signal,
    },
    claim,
    // As claimed: nothing has been written to the job's output since.
    { stdout: row.stdoutBytes, stderr: row.stderrBytes },
  );
}
