import { and, eq, or, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { submissionDirectory } from '../../shared/jobs/run-intent.ts';
import { isFollowed } from './polls.ts';

export type FollowedRow = Awaited<ReturnType<typeof readFollowed>>[number];

/** The job after which an account's next ones begin, by account, where one poll cannot hold all. */
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
 * At most `most` jobs of a host that are open, or have ended and left files there, shared evenly among accounts. If
 * there are too many accounts, those after `turn` come first.
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
      directory: submissionDirectory(jobs),
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
        // Only one worker is connected to a session whose user logged in with a code.
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
