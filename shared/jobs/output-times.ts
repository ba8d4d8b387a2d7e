import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { chunks, type StoredTimes, segments } from '../database/schema.ts';
import { type OutputStream, streamNumber } from './output.ts';

interface OutputTime {
  /** The offset of the first byte that was stored in this second. */
  offset: number;
  time: Date;
}

/** Rows of one query. */
const BATCH = 200;
const msOf = (time: SQL) => sql`floor(extract(epoch from ${time}) * 1000)::bigint`;

/**
 * The times of chunk rows, and of the bytes that are stored now, from `direct.start` on: the StoredTimes of a segment, or
 * null. One for each second, and wherever the other stream was written in between.
 */
export const storedTimes = (
  rows: SQL | undefined,
  direct: { start: number; seq: number } | undefined,
): SQL => sql`(
  select jsonb_agg(jsonb_build_array(ms, start, seq) order by start) from (
    select ms, start, seq, lag(ms / 1000) over stream as second, lag(seq) over stream as earlier from (
      select ${msOf(sql`${chunks.at}`)} as ms, ${chunks.start}, ${chunks.seq} from ${chunks}
        where ${rows} and ${chunks.at} is not null
      union all
      select ${msOf(sql`now()`)}, start, seq from (
        select ${direct?.start ?? null}::bigint as start, ${direct?.seq ?? null}::bigint as seq
      ) given where start is not null
    ) stored window stream as (order by start)
  ) marked where second is distinct from ms / 1000 or seq <> earlier + 1)`;

/** When the stored bytes of one stream were stored, in batches; what 0.1.0 stored is left out. */
export async function* readOutputTimes(
  db: Db,
  job: string,
  stream: OutputStream,
): AsyncGenerator<OutputTime[]> {
  let from = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (;;) {
    const rows = await listTimes(db, { job, stream, from });
    const found: OutputTime[] = [];
    for (const { times } of rows) {
      for (const [ms, offset] of times ?? []) {
        const second = Math.floor(ms / 1_000);
        // A segment may begin before what was read already: its chunk rows were rolled up meanwhile.
        if (offset < from || second <= last) continue;
        found.push({ offset, time: new Date(ms) });
        last = second;
      }
    }
    if (found.length > 0) yield found;
    if (rows.length < BATCH) return;
    from = rows.at(-1)?.until ?? from;
  }
}

/** One statement sees each byte in a segment or in a chunk row. */
async function listTimes(
  db: Db,
  { job, stream, from }: { job: string; stream: OutputStream; from: number },
): Promise<{ until: number; times: StoredTimes | null }[]> {
  const number = streamNumber(stream);
  const ofChunk = sql`jsonb_build_array(jsonb_build_array(${msOf(sql`at`)}, start))`;
  return db.execute<{ until: number; times: StoredTimes | null }>(sql`
    (select start, (start + length)::float8 as until, times from ${segments}
      where job = ${job} and stream = ${number} and start + length > ${from} order by start limit ${BATCH})
    union all
    (select start, (start + octet_length(bytes))::float8, case when at is not null then ${ofChunk} end from ${chunks}
      where job = ${job} and stream = ${number} and start >= ${from} order by start limit ${BATCH})
    order by start limit ${BATCH}`);
}
