import { and, eq, or, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { isFollowed } from './polls.ts';

export type FollowedRow = Awaited<ReturnType<typeof readFollowed>>[number];

/** By account: the job after which its next ones begin, where one poll does not hold all of them. */
export type Cursors = Record<string, string>;

export const accountOf = ({ username, owner }: Pick<FollowedRow, 'username' | 'owner'>) =>
  `${username} ${owner}`;

interface Following {
  hostname: string;
  cursors: Cursors;
  /** The account whose batch system was asked last. */
  turn: string;
  most: number;
}

/**
 * What is open on a host, and what has ended and has left its files there: at most so many, of each account as many as of any
 * other that has more. Where there are more accounts than that, those after `turn` come first.
 */
export async function readFollowed(
  { database, id: worker }: { database: Database; id: string },
  { hostname, cursors, turn, most }: Following,
) {
  const account = sql`${sessions.username} || ' ' || ${jobs.owner}`;
  const isNext = sql`${jobs.id} > coalesce(${JSON.stringify(cursors)}::jsonb ->> (${account}), '')`;
  return database.db
    .select({
      id: jobs.id,
      session: sessions.sid,
      owner: jobs.owner,
      username: sessions.username,
      folder: jobs.runPlace,
      batch: jobs.batch,
      state: jobs.state,
      finished: jobs.finished,
      stdout: jobs.stdoutBytes,
      stderr: jobs.stderrBytes,
      isUnknown: sql<boolean>`coalesce(${jobs.error} ->> 'code' = 'outcome_unknown', false)`,
    })
    .from(jobs)
    .innerJoin(sessions, eq(sessions.sid, jobs.session))
    .where(
      and(
        eq(sessions.hostname, hostname),
        isFollowed,
        // Of a session that its user logged in to with a code, one worker has the only connection.
        or(eq(sessions.interactive, false), eq(sessions.holder, worker)),
      ),
    )
    .orderBy(
      sql`row_number() over (partition by ${account} order by ${isNext} desc, ${jobs.id})`,
      sql`(${account}) collate "C" > ${turn} desc`,
      sql`(${account}) collate "C"`,
    )
    .limit(most);
}
