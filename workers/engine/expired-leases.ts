import { and, isNotNull, or, sql } from 'drizzle-orm';
import { jobs, leases } from '../../shared/database/schema.ts';
import { isHeld } from '../../shared/jobs/job-conditions.ts';
import { LEASE_SECONDS } from '../../shared/jobs/lease.ts';
import type { WorkerContext } from '../context.ts';
import { hadExpired, shortenLeases } from './leases.ts';
import { LOSS } from './losses.ts';

type Context = Pick<WorkerContext, 'database' | 'notifications' | 'log' | 'metrics'>;

/**
 * A worker that is stopped while it sends a statement, in a transaction, keeps its job's row locked for as long as its
 * connection lives: the server counts the wait as an active statement, which none of its time-outs ends.
 */
export async function endStuckTransactions({ database }: Context): Promise<void> {
  await database.db.execute(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pg_has_role(usesysid, 'usage') and pid <> pg_backend_pid()
      and application_name like 'windlass-%' and wait_event = 'ClientRead'
      and xact_start < now() - ${`${LEASE_SECONDS} seconds`}::interval`);
}

const isLeased = and(isHeld, isNotNull(jobs.leaseToken));

/**
 * Makes jobs whose leases had expired at that time, by clock(), wait again, longer after each loss; fails them after 20
 * losses in a row.
 */
export async function reclaimExpiredLeases(context: Context, at: string): Promise<void> {
  const { db } = context.database;
  await shortenLeases(db);
  const withJobs = sql`array(select distinct ${jobs.worker} from ${jobs} where ${isLeased})`;
  // Locked: a worker that renews its lease meanwhile either comes first, or finds that its jobs are taken.
  const expired = db.$with('expired').as(
    db
      .select({ worker: leases.worker })
      .from(leases)
      .where(and(sql`${leases.worker} = any(${withJobs})`, hadExpired(at)))
      .for('update', { skipLocked: true }),
  );
  // A claim of the release before, whose workers have no lease there.
  const isOlder = sql`not exists (select from ${leases} where ${leases.worker} = ${jobs.worker})`;
  const hasExpired = or(
    sql`${jobs.worker} in (select worker from expired)`,
    and(isOlder, sql`${jobs.leaseExpires} < ${at}::timestamptz`),
  );
  // A worker that has its row locked is about to write to it: it is checked again in the next round.
  const lost = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(isLeased, hasExpired))
    .for('update', { skipLocked: true });
  const rows = await db
    .with(expired)
    .update(jobs)
    .set(LOSS)
    .where(and(sql`${jobs.id} = any(array(${lost}))`, isLeased))
    .returning({ id: jobs.id, worker: jobs.worker, requestId: jobs.requestId });
  context.metrics.leasesExpired(rows.length);
  for (const { id, ...row } of rows) {
    context.log.warn({ job: id, ...row }, 'a worker was lost; its job waits for another');
    context.notifications.publish('job', id);
  }
}
