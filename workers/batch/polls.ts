import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { batchPolls, jobs, sessions } from '../../shared/database/schema.ts';
import { KINDS_WITH_SUBMISSIONS } from '../../shared/jobs/catalog.ts';
import { leavesUnremoved } from '../../shared/jobs/job-conditions.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';

/** The time between the end of one poll of a host and the start of the next, over all workers. */
const POLL_INTERVAL = sql.raw(`interval '5 seconds'`);
/** The most that a poll may take. The poll of a dead worker is repeated earlier. */
const POLL_TIMEOUT = sql.raw(`interval '4 minutes'`);
/** The time for which other workers leave a poll that is due to the worker that has the connections. */
const HEAD_START = sql.raw(`interval '3 seconds'`);
/** Hosts that a worker polls in one round. */
const MAX_HOSTS_PER_ROUND = 4;

export interface HostPoll {
  hostname: string;
  /** The account whose batch system was asked last: the next one is asked now. */
  turn: string;
}

/** Schedules polls of this session's host, unless they are. */
export async function followHost(db: Db, sid: string): Promise<void> {
  const hostname = db
    .select({ hostname: sessions.hostname })
    .from(sessions)
    .where(eq(sessions.sid, sid));
  await db.execute(sql`insert into ${batchPolls} (hostname) ${hostname} on conflict do nothing`);
}

/** Takes polls that are due; no other worker makes them meanwhile. */
export async function takePolls(db: Db, worker: string): Promise<HostPoll[]> {
  const due = sql`select hostname from ${batchPolls}
    where due <= now() - case when worker is null or worker = ${worker} then interval '0' else ${HEAD_START} end
      or due between now() + ${POLL_INTERVAL} and now() + ${POLL_TIMEOUT} - ${POLL_INTERVAL}
        and not exists (select from workers where id = ${batchPolls.worker} and ${sql.raw(IS_ALIVE)})
    order by due limit ${sql.raw(String(MAX_HOSTS_PER_ROUND))} for update skip locked`;
  return db
    .update(batchPolls)
    .set({ due: sql`now() + ${POLL_TIMEOUT}`, worker })
    .where(sql`${batchPolls.hostname} = any(array(${due}))`)
    .returning({ hostname: batchPolls.hostname, turn: batchPolls.turn });
}

/** Schedules the host's next poll, in turn for a worker with the only connection of a session there. */
export async function endPoll(db: Db, { hostname, turn }: HostPoll): Promise<void> {
  await db
    .update(batchPolls)
    .set({
      due: sql`now() + ${POLL_INTERVAL}`,
      turn,
      worker: sql`coalesce(${nextHolder(hostname)}, worker)`,
    })
    .where(eq(batchPolls.hostname, hostname));
}

const nextHolder = (hostname: string) => sql`(
  select holder from ${sessions} where hostname = ${hostname} and sealed is not null and interactive and holder is not null
    and exists (select from ${jobs} where session = sid and ${isFollowed})
  order by holder > coalesce(${batchPolls.worker}, '') desc, holder limit 1)`;

/**
 * This worker can follow nothing there. Passes the poll to a worker that has the only connection of a session with a
 * batch job. Without one the poll ends: a worker with a job asks for it again within a minute.
 */
export async function passPoll(db: Db, hostname: string): Promise<void> {
  const [job] = await db
    .select({ holder: sessions.holder })
    .from(jobs)
    .innerJoin(sessions, eq(sessions.sid, jobs.session))
    .where(and(eq(sessions.hostname, hostname), isFollowed))
    .limit(1);
  const isOfHost = eq(batchPolls.hostname, hostname);
  if (!job) return void (await db.delete(batchPolls).where(isOfHost));
  await db
    .update(batchPolls)
    .set({ due: sql`now() + ${POLL_INTERVAL}`, worker: job.holder })
    .where(isOfHost);
}

/** A job that is open or has left files on the host, in a usable session. */
export const isFollowed = and(
  isNotNull(sessions.sealed),
  inArray(jobs.kind, KINDS_WITH_SUBMISSIONS),
  leavesUnremoved,
);
