import { inArray, sql } from 'drizzle-orm';
import { anyOf } from '../database/any-of.ts';
import type { Tx } from '../database/connect.ts';
import {
  chunks,
  jobStatisticsProgress,
  jobs,
  leftoverRuns,
  segments,
  sessions,
  uncountedJobs,
  uploads,
  webhookDeliveries,
} from '../database/schema.ts';
import { scheduleDeletion } from '../storage/pending-deletions.ts';
import { KINDS_THAT_RUN_ONCE, KINDS_WITH_SUBMISSIONS } from './catalog.ts';
import { CLEAN_UP, kindIsOneOf, leavesUnremoved } from './job-conditions.ts';
import { resultObjects } from './result-objects.ts';
import { STATISTICS_KEPT } from './statistics-retention.ts';

/** Chunk rows that one statement removes. */
const CHUNKS = 10_000;

/**
 * Removes those of these jobs that have ended and are not locked, and returns their ids. `lock` may lock some of them first:
 * what other rows need to know of them is written by then.
 *
 * A job whose end is not counted yet becomes an uncounted one (workers/upkeep/job-statistics.ts).
 *
 * A run that may still be on its host becomes a leftover run, whose id stays known. A batch job stays until its host
 * and batch system are cleaned up, as its row alone tells what is there.
 */
export async function removeJobs(
  tx: Tx,
  ids: string[],
  lock?: () => Promise<unknown>,
): Promise<string[]> {
  await detachJobs(tx, ids);
  await lock?.();
  const free = sql`select ${jobs.id} from ${jobs} where ${among(ids)} and finished is not null and not ${isOnItsHost} order by ${jobs.id} for update skip locked`;
  const removed = await tx.execute<{ id: string; object: string | null }>(sql`
    with removed as (
      delete from ${jobs} where id = any(array(${free}))
      returning id, kind, state, created, started, finished, session, run_at, run_removed, array[${resultObjects(sql`result`)}] as objects,
        ${kindIsOneOf(KINDS_THAT_RUN_ONCE)} and cancel_requested is null and coalesce(error ->> 'code' = 'outcome_unknown', false) as may_keep_running
    ), leftover as (
      insert into ${leftoverRuns} (id, session, run_at, may_keep_running)
      select id, session, run_at, may_keep_running from removed where ${leavesUnremoved} and not ${kindIsOneOf(KINDS_WITH_SUBMISSIONS)}
      on conflict do nothing
    ), uncounted as (
      insert into ${uncountedJobs} (id, kind, state, created, started, finished)
      select id, kind, state, created, started, finished from removed
      where finished > now() - ${STATISTICS_KEPT}
        and not exists (select from ${jobStatisticsProgress} where ended_until > finished)
      on conflict do nothing
    )
    select id, object from removed, unnest(objects) as object`);
  const gone = [...new Set(removed.map(row => row.id))];
  if (gone.length === 0) return [];
  // Nothing is added any more: a writer of output locks the row of its job first.
  await removeChunks(tx, gone);
  const rolledUp = await tx
    .delete(segments)
    .where(sql`${segments.job} = ${anyOf(gone)}`)
    .returning({ object: segments.object });
  await scheduleDeletion(
    tx,
    [...removed, ...rolledUp].map(row => row.object),
  );
  return gone;
}

/** In statements that end in time, however many rows there are. Each goes on by the key: the index has the removed rows still. */
async function removeChunks(tx: Tx, ids: string[]): Promise<void> {
  let from = sql`true`;
  for (;;) {
    const [last] = await tx.execute<{ job: string; seq: string; count: number }>(sql`
      with found as materialized (
        select ctid as place, job, seq from ${chunks} where job = ${anyOf(ids)} and ${from}
        order by job, seq limit ${CHUNKS}
      ), removed as (
        delete from ${chunks} where ctid = any(array(select place from found))
      )
      select job, seq::text, (count(*) over ())::int as count from found order by job desc, seq desc limit 1`);
    if (!last || last.count < CHUNKS) return;
    from = sql`(job, seq) > (${last.job}, ${last.seq}::bigint)`;
  }
}

/**
 * Writes what other rows need to know of ended jobs into those rows, before the jobs are removed: the last use of a
 * session, the end of an upload's parse, the record for a webhook. Locks these rows before the jobs, as everywhere.
 */
async function detachJobs(tx: Tx, ids: string[]): Promise<void> {
  await touchSessions(tx, ids);
  const parses = sql`select ${jobs.id} from ${jobs} where ${among(ids)} and finished is not null and kind = 'parse'`;
  await tx
    .update(uploads)
    .set({
      parseEnd: sql`(select jsonb_build_object('state', state, 'version', version, 'error', error, 'finished', finished) from ${jobs} where ${jobs.id} = ${uploads.job})`,
    })
    .where(sql`${uploads.job} = any(array(${parses}))`);
  const record = sql`(select to_jsonb(${jobs}) - 'payload' from ${jobs} where ${jobs.id} = ${webhookDeliveries.job})`;
  await tx
    .update(webhookDeliveries)
    .set({ record })
    .where(
      sql`${webhookDeliveries.job} = ${anyOf(ids)} and ${webhookDeliveries.state} = 'pending' and ${webhookDeliveries.record} is null`,
    );
}

/**
 * An open session is idle since the end of its last job at the earliest. Statements by primary key only: with a
 * condition on open sessions the planner may read all of them, where its statistics show few.
 */
async function touchSessions(tx: Tx, ids: string[]): Promise<void> {
  const ends = await tx.execute<{ sid: string; finished: string }>(sql`
    select session as sid, max(finished)::text as finished from ${jobs}
    where ${among(ids)} and finished is not null and session is not null group by session order by session`);
  const found = await tx
    .select({ sid: sessions.sid, isOpen: sql<boolean>`${sessions.ended} is null` })
    .from(sessions)
    .where(sql`${sessions.sid} = ${anyOf(ends.map(end => end.sid))}`);
  const open = new Set(found.filter(session => session.isOpen).map(session => session.sid));
  for (const { sid, finished } of ends)
    if (open.has(sid))
      await tx
        .update(sessions)
        .set({ accessed: sql`${finished}::timestamptz` })
        .where(sql`${sessions.sid} = ${sid} and ${sessions.accessed} < ${finished}::timestamptz`);
}

/** Whether the host of a batch job will be asked again: while there are credentials for that. */
export const isOnItsHost = sql`(${inArray(jobs.kind, KINDS_WITH_SUBMISSIONS)} and ${jobs.runAt} is not null and not ${jobs.runRemoved}
  and exists (select from ${sessions} where ${sessions.sid} = ${jobs.session}
    and (${sessions.ended} is null or ${sessions.ended} > now() - ${CLEAN_UP})))`;

const among = (ids: string[]) => sql`${jobs.id} = ${anyOf(ids)}`;
