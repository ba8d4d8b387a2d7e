import { sql } from 'drizzle-orm';
import { workers } from '../../../shared/database/schema.ts';
import { unavailable } from '../../../shared/errors/errors.ts';
import {
  type AwaitedKind,
  JOBS,
  type QueueName,
  workerTypeOf,
} from '../../../shared/jobs/catalog.ts';
import type { ApiContext } from '../../context.ts';

/** Age of the last heartbeat of all workers at which a request whose answer depends on a job is refused. */
const HEARTBEAT_AGE = sql`interval '30 seconds'`;
/** Where all live workers are of the previous release, which does such jobs in this queue. */
const FORMER_QUEUE = 'remote';

/** The queue of such a job. Throws `unavailable` unless a worker that takes it is alive. */
export async function requireWorker(
  { database }: ApiContext,
  kind: AwaitedKind,
): Promise<QueueName> {
  const { queue } = JOBS[kind];
  const serves = (name: QueueName) => sql<boolean>`${workers.slots} ? ${name}::text`;
  const [found] = await database.db
    .select({ isServed: serves(queue) })
    .from(workers)
    .where(
      sql`${workers.seen} > now() - ${HEARTBEAT_AGE} and not ${workers.draining} and (${serves(queue)} or ${serves(FORMER_QUEUE)})`,
    )
    .orderBy(sql`1 desc`)
    .limit(1);
  if (found) return found.isServed ? queue : FORMER_QUEUE;
  throw unavailable(
    `no ${workerTypeOf(kind)} worker is running.`,
    'Try again in a while, or have an administrator start one.',
    10,
  );
}
