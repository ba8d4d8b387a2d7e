import { type SQL, sql } from 'drizzle-orm';

/** Bounds of a histogram of durations in seconds: from 10 ms to a day, some three for each power of ten. */
const DURATION_BOUNDS = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100],
  ...[200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 86_400],
];
const BUCKETS = DURATION_BOUNDS.length + 1;

/** Counts rows by their seconds: how many are below each bound and not below the one before, and how many below none. */
export const histogramOf = (seconds: SQL): SQL => {
  const bounds = sql.raw(`array[${DURATION_BOUNDS.join(',')}]::float8[]`);
  return eachBucket(
    bucket => sql`count(*) filter (where width_bucket(${seconds}, ${bounds}) = ${sql.raw(bucket)})`,
    0,
  );
};

/** The sum of rows' histograms; an empty array counts nothing. */
export const sumOfHistograms = (column: SQL): SQL =>
  eachBucket(bucket => sql`coalesce(sum(${column}[${sql.raw(bucket)}]), 0)`, 1);

const eachBucket = (expression: (bucket: string) => SQL, first: number): SQL =>
  sql`array[${sql.join(
    Array.from({ length: BUCKETS }, (_, n) => expression(String(n + first))),
    sql`, `,
  )}]::int[]`;

/** The seconds within which that share of the counted rows ended; undefined where nothing was counted. */
export function quantile(counts: number[], share: number, longest: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let below = 0;
  const bucket = counts.findIndex(count => {
    below += count;
    return below >= share * total;
  });
  return Math.min(DURATION_BOUNDS[bucket] ?? longest, longest);
}
