import { sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { chunks, jobs, pendingDeletions } from '../../shared/database/schema.ts';
import { writeTexts } from '../../shared/database/text-arrays.ts';
import { tryLock } from '../../shared/database/try-lock.ts';
import { hasEnded } from '../../shared/jobs/job-conditions.ts';
import { isOnItsHost, removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';
import { REST } from './remove-in-batches.ts';

/** Jobs of one transaction. */
const BATCH = 1_000;
/** A batch's output in bytes, unless its first job has more: large outputs take longest to remove. */
const BATCH_BYTES = 64 << 20;
/** And in chunk rows. */
const BATCH_ROWS = 20_000;
/** While so many objects wait for deletion no job is removed, because a user's own deletions would wait behind them. */
const MAX_PENDING_DELETIONS = 5_000;

type Context = Pick<WorkerContext, 'database' | 'stopping'> & {
  config: Pick<WorkerContext['config'], 'JOB_RETENTION_DAYS'>;
  metrics: Pick<WorkerContext['metrics'], 'jobsRemoved'>;
};

interface Batch {
  removed: number;
  /** Where the next batch begins; undefined if none is due beyond this one. */
  next: string | undefined;
}

/**
 * Removes jobs that ended JOB_RETENTION_DAYS ago, with their output, oldest first. After an outage a million may be
 * due: small transactions with pauses, in one worker at a time, leave the database to others.
 */
export async function removeOldJobs(context: Context): Promise<void> {
  const { config, database, metrics, stopping } = context;
  if (config.JOB_RETENTION_DAYS === 0) return;
  const due = sql`${hasEnded} and ${jobs.finished} < now() - make_interval(days => ${config.JOB_RETENTION_DAYS}) and not ${isOnItsHost}`;
  // The index keeps entries of removed rows until the next vacuum, so each batch begins behind the one before.
  let from: string | undefined = '-infinity';
  while (from !== undefined && !stopping.aborted) {
    const begin: string = from;
    const began = performance.now();
    const { removed, next } = await database.db.transaction(tx =>
      removeBatch(tx, sql`${due} and ${jobs.finished} >= ${begin}::timestamptz`),
    );
    metrics.jobsRemoved(removed);
    // Jobs that are locked, or have files on their hosts, are tried again in the next run.
    if (removed === 0 && next === begin) return;
    from = next;
    if (next) await sleep(stopping, REST * (performance.now() - began));
  }
}

async function removeBatch(tx: Tx, due: ReturnType<typeof sql>): Promise<Batch> {
  if (!(await tryLock(tx, 'retention')) || (await hasManyPendingDeletions(tx)))
    return { removed: 0, next: undefined };
  const found = await tx
    .select({
      id: jobs.id,
      end: sql<string>`${jobs.finished}::text`,
      bytes: sql<number>`(${jobs.stdoutBytes} + ${jobs.stderrBytes})::float8`,
    })
    .from(jobs)
    .where(due)
    .orderBy(jobs.finished)
    .limit(BATCH);
  const rows = await countChunks(
    tx,
    found.map(job => job.id),
  );
  const count = Math.min(
    countFitting(
      found.map(job => job.bytes),
      BATCH_BYTES,
    ),
    countFitting(
      found.map(job => rows.get(job.id) ?? 0),
      BATCH_ROWS,
    ),
  );
  const ids = found.slice(0, count).map(job => job.id);
  if (ids.length === 0) return { removed: 0, next: undefined };
  const removed = await removeJobs(tx, ids);
  const isLast = count === found.length && count < BATCH;
  return { removed: removed.length, next: isLast ? undefined : found[count - 1]?.end };
}

/** How many of these sizes, from the first on, are no more than `most` together; the first one in any case. */
function countFitting(sizes: number[], most: number): number {
  let sum = 0;
  const tooMany = sizes.findIndex((each, i) => {
    sum += each;
    return i > 0 && sum > most;
  });
  return tooMany < 0 ? sizes.length : tooMany;
}

/** Chunk rows of these jobs, in their order, until there are more than a transaction removes: the rest is not counted. */
async function countChunks(tx: Tx, ids: string[]): Promise<Map<string, number>> {
  const most = BATCH_ROWS + 1;
  const rows = await tx.execute<{ id: string; n: number }>(sql`
    select id, count(*)::int as n from (
      select given.id from unnest(${writeTexts(ids)}::text[]) with ordinality as given(id, place)
      cross join lateral (select from ${chunks} where ${chunks.job} = given.id limit ${most}) found
      limit ${most}
    ) counted group by id`);
  return new Map(rows.map(({ id, n }) => [id, n]));
}

async function hasManyPendingDeletions(tx: Tx): Promise<boolean> {
  const some = tx
    .select({ one: sql`1` })
    .from(pendingDeletions)
    .where(sql`${pendingDeletions.due} <= now()`)
    .limit(MAX_PENDING_DELETIONS);
  const [row] = await tx.execute<{ n: number }>(sql`select count(*)::int as n from (${some}) due`);
  return (row?.n ?? 0) >= MAX_PENDING_DELETIONS;
}
