import { lt, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { jobStatistics, jobs, uncountedJobs } from '../../shared/database/schema.ts';
import { histogramOf } from '../../shared/jobs/duration-histogram.ts';
import { hasEnded, hasSlot } from '../../shared/jobs/job-conditions.ts';
import { STATISTICS_KEPT } from '../../shared/jobs/statistics-retention.ts';
import type { WorkerContext } from '../context.ts';

/** Longer than any transaction that ends a job, so a minute is counted after all its ends are committed. */
const SETTLED = sql`interval '1 minute'`;
/** Minutes in one statement: after an upgrade from 0.1.0, or a time without upkeep, there are many. */
const SPAN = sql`interval '6 hours'`;
/** Ends in one statement, which may take 10 s; more if they fall into one minute. */
const MAX_ENDS = 50_000;
/** The most waiting jobs to count: more takes long and tells nothing new. */
const MAX_WAITING = 100_000;
const minuteOf = (time: ReturnType<typeof sql>) => sql`date_trunc('minute', ${time})`;

/**
 * Jobs that have ended, and of those that were removed what is to be counted. One statement sees each of them in one of the two
 * places. A removal that read an older progress leaves jobs that are counted already; these are of minutes before.
 */
const ENDED = sql`(
  select kind, state, created, started, finished from ${jobs} where ${hasEnded}
  union all
  select kind, state, created, started, finished from ${uncountedJobs}
) ended`;

type Context = Pick<WorkerContext, 'database' | 'stopping'>;

/**
 * Counts, once, the jobs that ended in each minute, and samples the queues each minute. Locks the row of progress, so
 * that one worker at a time does it; progress and counts commit together.
 */
export async function countJobs(
  { database: { db }, stopping }: Context,
  mostEnds = MAX_ENDS,
): Promise<void> {
  await db.execute(sql`insert into job_statistics_progress (ended_until)
    values (${minuteOf(sql`now() - ${STATISTICS_KEPT}`)}) on conflict do nothing`);
  while (!stopping.aborted && (await db.transaction(tx => countSome(tx, mostEnds))));
}

/** Whether there is more to be counted. */
async function countSome(tx: Tx, mostEnds: number): Promise<boolean> {
  const settled = minuteOf(sql`now() - ${SETTLED}`);
  // Where the clock was ahead, the last hours are counted again, which changes no count.
  const [progress] = await tx.execute<{ from: string; until: string; mustLook: boolean }>(sql`
    with progress as (
      select case when ended_until > now() then ${settled} - ${SPAN} else ended_until end as ended_until, sampled
      from job_statistics_progress for update skip locked
    )
    select ended_until::text as "from",
      greatest(ended_until, least(ended_until + ${SPAN}, ${settled}))::text as until,
      (sampled is null or sampled > now() + interval '2 minutes' or sampled < ${minuteOf(sql`now()`)}) as "mustLook"
    from progress`);
  if (!progress) return false;
  const { from, mustLook } = progress;
  if (mustLook) await lookAtDepth(tx);
  if (from === progress.until) return false;
  const until = await findUntil(tx, progress, mostEnds);
  await countEnds(tx, from, until);
  await tx.execute(sql`update job_statistics_progress set ended_until = ${until}::timestamptz`);
  await tx.delete(uncountedJobs).where(lt(uncountedJobs.finished, sql`${until}::timestamptz`));
  await tx.delete(jobStatistics).where(lt(jobStatistics.minute, sql`now() - ${STATISTICS_KEPT}`));
  return true;
}

/** The end of the minutes from `from` on with at most so many ends; at least one minute. */
async function findUntil(
  tx: Tx,
  { from, until }: { from: string; until: string },
  mostEnds: number,
): Promise<string> {
  const [row] = await tx.execute<{ until: string }>(sql`
    select greatest(${minuteOf(sql`finished`)}, ${from}::timestamptz + interval '1 minute')::text as until
    from ${ENDED}
    where finished >= ${from}::timestamptz and finished < ${until}::timestamptz
    order by finished offset ${mostEnds} limit 1`);
  return row?.until ?? until;
}

async function countEnds(tx: Tx, from: string, until: string): Promise<void> {
  const seconds = (begin: string, end: string) =>
    sql.raw(`extract(epoch from greatest(${end} - ${begin}, interval '0'))::float8`);
  const wait = seconds('created', 'started');
  const duration = seconds('started', 'finished');
  const count = (state: string) => sql`count(*) filter (where state = ${state})`;
  await tx.execute(sql`
    insert into job_statistics as known (minute, kind, succeeded, failed, cancelled,
      waits, longest_wait, durations, longest_duration)
    select ${minuteOf(sql`finished`)}, kind, ${count('succeeded')}, ${count('failed')}, ${count('cancelled')},
      ${histogramOf(wait)}, max(${wait}), ${histogramOf(duration)}, max(${duration})
    from ${ENDED}
    where finished >= ${from}::timestamptz and finished < ${until}::timestamptz
    group by 1, 2 order by 1, 2
    on conflict (minute, kind) do update set succeeded = excluded.succeeded, failed = excluded.failed,
      cancelled = excluded.cancelled, waits = excluded.waits, longest_wait = excluded.longest_wait,
      durations = excluded.durations, longest_duration = excluded.longest_duration`);
}

async function lookAtDepth(tx: Tx): Promise<void> {
  await tx.execute(sql`
    insert into job_statistics as known (minute, kind, waiting, running)
    select ${minuteOf(sql`now()`)}, kind, sum(waiting), sum(running) from (
      select kind, count(*) as waiting, 0 as running from (
        select kind from jobs where finished is null and lease_token is null limit ${sql.raw(String(MAX_WAITING))}
      ) due group by kind
      union all
      select kind, 0, count(*) from jobs where ${hasSlot} and num_nonnulls(lease_token) = 1 group by kind
    ) open group by kind
    on conflict (minute, kind) do update set waiting = excluded.waiting, running = excluded.running`);
  await tx.execute(sql`update job_statistics_progress set sampled = now()`);
}
