import { and, isNotNull, sql } from 'drizzle-orm';
import { jobs, leases } from '../../shared/database/schema.ts';
import { hasSlot } from '../../shared/jobs/job-conditions.ts';
import { LEASE_SECONDS } from '../../shared/jobs/lease.ts';
import type { WorkerContext } from '../context.ts';
import { LOSS } from './losses.ts';
import { Unchanged, type Versioned } from './unchanged.ts';

type Context = Pick<WorkerContext, 'database' | 'notifications' | 'log' | 'metrics'>;

/** The dispatcher looks once a second, so this many looks are as long as a lease. */
export const SILENT_TICKS = LEASE_SECONDS;

/** Another one after each statement: a long transaction that goes on is not stuck. */
const transactionVersion = sql`concat(xact_start, ' ', query_start, ' ', state_change)`;

/** What the dispatcher reclaims from silent workers. */
export class SilentWorkers {
  readonly #leases: Unchanged<Versioned>;
  readonly #transactions: Unchanged<Versioned>;

  constructor(looks = SILENT_TICKS) {
    this.#leases = new Unchanged(looks);
    this.#transactions = new Unchanged(looks);
  }

  /**
   * A worker that is stopped in the middle of sending a statement keeps its job's row locked as long as its connection
   * lives: for the server the statement is active, so no time-out ends it.
   */
  async endStuckTransactions({ database }: Pick<Context, 'database'>): Promise<void> {
    const open = await database.db.execute<{ id: string; version: string }>(sql`
      select pid::text as id, ${transactionVersion} as version from pg_stat_activity
      where datname = current_database() and pg_has_role(usesysid, 'usage') and pid <> pg_backend_pid()
        and application_name like 'windlass-%' and wait_event = 'ClientRead' and xact_start is not null`);
    for (const { id, version } of this.#transactions.look([...open]))
      await database.db.execute(sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where pid = ${id}::int and ${transactionVersion} = ${version} and wait_event = 'ClientRead'`);
  }

  async reclaimExpiredLeases(context: Context): Promise<void> {
    const current = await readLeases(context).catch((error: unknown) => {
      this.forget();
      throw error;
    });
    const lost = this.#leases.look(current);
    if (lost.length > 0) await reclaimLeases(context, lost);
  }

  /** After an outage everyone can give a sign of life before anything is taken. */
  forget(): void {
    this.#leases.forget();
    this.#transactions.forget();
  }
}

const isLeased = and(hasSlot, isNotNull(jobs.leaseToken));
/** The version of a claim without a lease, which a release before 0.2 made and nobody renews. */
const NO_LEASE = 'none';
/** Each renewal changes xmin, whatever the clock says. */
const leaseVersion = sql`${leases}.xmin::text`;

/** The leases of workers that have jobs, by the id of the worker. */
export async function readLeases({ database }: Pick<Context, 'database'>): Promise<Versioned[]> {
  const rows = await database.db.execute<Versioned & Record<string, unknown>>(sql`
    select coalesce(${jobs.worker}, '') as id, coalesce((
      select ${leaseVersion} from ${leases} where ${leases.worker} = ${jobs.worker}), ${NO_LEASE}) as version
    from ${jobs} where ${isLeased} group by ${jobs.worker} order by id`);
  return [...rows];
}

/**
 * Reclaims the jobs whose lease is still as it was seen: each waits longer after each loss, and fails after 20 in a row.
 */
export async function reclaimLeases(context: Context, seen: Versioned[]): Promise<void> {
  const { db } = context.database;
  const given = db
    .$with('seen', { id: sql`id`, version: sql`version` })
    .as(
      sql`select * from json_to_recordset(${JSON.stringify(seen)}::json) as seen(id text, version text)`,
    );
  // Locked: a renewal at the same time either comes first, or finds its jobs reclaimed.
  const expired = db
    .$with('expired')
    .as(
      db
        .select({ worker: leases.worker })
        .from(leases)
        .where(
          sql`exists (select from seen where id = ${leases.worker} and version = ${leaseVersion})`,
        )
        .for('update', { skipLocked: true }),
    );
  const hasExpired = sql`(${jobs.worker} in (select worker from expired)
    or exists (select from seen where id = coalesce(${jobs.worker}, '') and version = ${NO_LEASE})
      and not exists (select from ${leases} where ${leases.worker} = ${jobs.worker}))`;
  // Skips a row that its worker has locked and is about to write; the next round checks it again.
  const lost = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(isLeased, hasExpired))
    .for('update', { skipLocked: true });
  const rows = await db
    .with(given, expired)
    .update(jobs)
    .set(LOSS)
    .where(and(sql`${jobs.id} = any(array(${lost}))`, isLeased))
    .returning({ id: jobs.id, worker: jobs.worker, requestId: jobs.requestId });
  context.metrics.leasesExpired(rows.length);
  for (const { id, ...row } of rows) {
    context.log.warn({ job: id, ...row }, 'a worker was lost; its job is reclaimed');
    context.notifications.publish('job', id);
  }
}
