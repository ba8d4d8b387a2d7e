import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { sessions } from '../database/schema.ts';
import { JOB_KINDS, type JobKind, jobDefinition } from './catalog.ts';
import { IS_WAITING } from './job-conditions.ts';
import { IS_ALIVE } from './lease.ts';

/** By kind of job: the newest version of its payload that a program understands, and with it all versions before. */
export type Understood = Record<string, number>;

/** The versions that the jobs of a kind have: usually, and in a session that the previous release would use wrongly. */
export function versionsOf(kind: JobKind): { usual: number; newer: number } {
  const { version: usual = 1, versionInNewerSessions: newer = usual } = jobDefinition(kind);
  return { usual, newer };
}

/** SQL: the previous release would use a row of `sessions` wrongly. */
export const IS_NEWER_SESSION = `(sessions.startup <> 'once' or sessions.env_names is not null
  or exists (select from hosts where hosts.name = sessions.hostname
    and (hosts.jump is not null or exists (select from unnest(hosts.keys) as pin where pin like '@%'))))`;

/** Which of them a job in this session has. */
export function versionIn(kind: JobKind, sid: string): SQL<number> {
  const { usual, newer } = versionsOf(kind);
  return sql<number>`(case when exists (select from ${sessions} where ${sessions.sid} = ${sid} and ${sql.raw(IS_NEWER_SESSION)}) then ${newer}::int else ${usual}::int end)`;
}

/** What this program understands. */
export const UNDERSTOOD: Understood = Object.fromEntries(
  JOB_KINDS.map(kind => [kind, Math.max(...Object.values(versionsOf(kind)))]),
);
/** A worker of the previous release does not say what it understands: it has the same kinds, in their first version. */
const UNDERSTOOD_BEFORE = JSON.stringify(Object.fromEntries(JOB_KINDS.map(kind => [kind, 1])));

/** Waiting jobs that are looked at, at most. */
const MAX_READ = 50_000;

/** Whether the job of a row is understood. */
export const isUnderstood = (understood: SQL) =>
  sql`payload_version <= coalesce((${understood} ->> kind)::int, 0)`;

/**
 * What the live workers of each queue understand: a job that none of them understands is not given to one that would
 * return it again and again. Under '' what any live worker understands, for queues that none serves.
 */
type UnderstoodByQueue = Record<string, Understood>;

/** Undefined where no worker is alive. */
export async function readUnderstoodByQueue(db: Db): Promise<UnderstoodByQueue | undefined> {
  const [row] = await db.execute<{ understood: UnderstoodByQueue | null }>(sql`
    select jsonb_object_agg(queue, versions) as understood from (
      select queue, jsonb_object_agg(kind, version) as versions from (
        select queue, kind, max(version::int) as version
        from workers,
          lateral (select '' as queue union all
            select key from jsonb_each_text(slots) where not draining and value::int > 0) taken,
          jsonb_each_text(coalesce(understands, ${UNDERSTOOD_BEFORE}::jsonb)) as u(kind, version)
        where ${sql.raw(IS_ALIVE)}
        group by queue, kind
      ) newest group by queue
    ) queues`);
  return row?.understood ?? undefined;
}

/** Whether the job of a row is understood by the workers of its queue. */
export function isUnderstoodInQueue(understood: UnderstoodByQueue): SQL {
  const json = sql`${JSON.stringify(understood)}::jsonb`;
  return isUnderstood(sql`coalesce(${json} -> queue, ${json} -> '')`);
}

export interface WaitingKind {
  kind: string;
  version: number;
  jobs: number;
}

/** Waiting jobs that no worker of their queue understands: work of a newer release. */
export async function readNotUnderstood(db: Db): Promise<WaitingKind[]> {
  const understood = await readUnderstoodByQueue(db);
  if (!understood) return [];
  const rows = await db.execute<{ kind: string; version: number; jobs: number }>(sql`
    select kind, payload_version as version, count(*)::int as jobs
    from (select kind, queue, payload_version from jobs where ${sql.raw(IS_WAITING)} limit ${MAX_READ}) waiting
    where not ${isUnderstoodInQueue(understood)}
    group by 1, 2 order by 1, 2`);
  return [...rows];
}

/** One line about what waits. */
export const describeWaiting = ({ kind, version, jobs }: WaitingKind) =>
  `${jobs} ${jobs === 1 ? 'job' : 'jobs'} of kind ${kind} (payload version ${version}) ${jobs === 1 ? 'waits' : 'wait'} for a worker of a newer release`;
