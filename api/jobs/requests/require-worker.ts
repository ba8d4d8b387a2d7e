import { sql } from 'drizzle-orm';
import { workers } from '../../../shared/database/schema.ts';
import { unavailable } from '../../../shared/errors.ts';
import { type AwaitedKind, JOBS } from '../../../shared/jobs/catalog.ts';
import type { ApiContext } from '../../context.ts';

/** A request whose answer depends on a job is refused where no worker had a heartbeat for so long. */
const HEARTBEAT_AGE = sql`interval '30 seconds'`;

/** Throws `unavailable` unless a worker that takes such jobs is alive. */
export async function requireWorker({ database }: ApiContext, kind: AwaitedKind): Promise<void> {
  const { queue } = JOBS[kind];
  const [found] = await database.db
    .select({ id: workers.id })
    .from(workers)
    .where(sql`${workers.seen} > now() - ${HEARTBEAT_AGE} and ${workers.slots} ? ${queue}::text`)
    .limit(1);
  if (found) return;
  throw unavailable(
    `no ${queue} worker is running.`,
    'Try again in a while, or have an administrator start one.',
    10,
  );
}
