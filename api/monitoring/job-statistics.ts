import { sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Db } from '../../shared/database/connect.ts';
import { timestampOf } from '../../shared/database/timestamp.ts';
import { quantile, sumOfHistograms } from '../../shared/jobs/duration-histogram.ts';

const count = z.number().int().min(0);
const seconds = z.number().min(0);
const spread = z
  .object({ median: seconds, p95: seconds, longest: seconds })
  .meta({ id: 'DurationSpread' });

/** What is counted of the jobs of one kind in one step. */
export const statistic = z
  .object({
    time: z.iso.datetime().describe('Where the step begins.'),
    kind: z.string(),
    succeeded: count.describe('Jobs that ended so in this step.'),
    failed: count,
    cancelled: count,
    wait: spread
      .nullable()
      .describe('Seconds from creation to start, of the jobs that ended in this step.'),
    duration: spread.nullable().describe('Seconds from start to end.'),
    waiting: count.nullable().describe('The most that waited; null where nobody looked.'),
    running: count.nullable().describe('The most that ran; null where nobody looked.'),
  })
  .meta({ id: 'JobStatistic' });
type Statistic = z.output<typeof statistic>;

interface Row extends Omit<Statistic, 'wait' | 'duration'> {
  waits: number[];
  longestWait: number | null;
  durations: number[];
  longestDuration: number | null;
}

/** What upkeep has counted since a time, by steps of `step` seconds; at most two minutes ago. */
export async function readStatistics(
  db: Db,
  { since, step }: { since: Date; step: number },
): Promise<Statistic[]> {
  const rows = await db.execute<Row & Record<string, unknown>>(sql`
    select to_char(date_bin(make_interval(secs => ${step}), minute, timestamptz '2000-01-01T00:00:00Z')
        at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as time,
      kind, sum(succeeded)::int as succeeded, sum(failed)::int as failed, sum(cancelled)::int as cancelled,
      to_jsonb(${sumOfHistograms(sql`waits`)}) as waits, max(longest_wait)::float8 as "longestWait",
      to_jsonb(${sumOfHistograms(sql`durations`)}) as durations, max(longest_duration)::float8 as "longestDuration",
      max(waiting) as waiting, max(running) as running
    from job_statistics
    where minute >= date_bin(make_interval(secs => ${step}), ${timestampOf(since.toISOString())}, timestamptz '2000-01-01T00:00:00Z')
    group by 1, 2 order by 1, 2`);
  return [...rows].map(
    ({ waits, longestWait, durations, longestDuration, waiting, running, ...row }) => ({
      ...row,
      wait: spreadOf(waits, longestWait),
      duration: spreadOf(durations, longestDuration),
      waiting,
      running,
    }),
  );
}

function spreadOf(counts: number[], longest: number | null): Statistic['wait'] {
  if (longest === null) return null;
  const at = (share: number) => quantile(counts, share, longest) ?? longest;
  return { median: at(0.5), p95: at(0.95), longest };
}
