import { sql } from 'drizzle-orm';
import { rowExists } from '../../../shared/database/row-exists.ts';
import { workers } from '../../../shared/database/schema.ts';
import { unavailable } from '../../../shared/errors/errors.ts';
import { type AwaitedKind, JOBS, workerTypeOf } from '../../../shared/jobs/catalog.ts';
import type { ApiContext } from '../../context.ts';

/** Age of the last heartbeat of all workers at which a request whose answer depends on a job is refused. */
const HEARTBEAT_AGE = sql`interval '30 seconds'`;

/** Throws `unavailable` unless a worker that takes such jobs is alive. */
export async function requireWorker({ database }: ApiContext, kind: AwaitedKind): Promise<void> {
  const { queue } = JOBS[kind];
  const takesIt = sql`${workers.seen} > now() - ${HEARTBEAT_AGE} and not ${workers.draining} and ${workers.slots} ? ${queue}::text`;
  if (await rowExists(database.db, workers, takesIt)) return;
  throw unavailable(
    `no ${workerTypeOf(kind)} worker is running.`,
    'Try again in a while, or have an administrator start one.',
    10,
  );
}
