import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { JOB_KINDS, type JobKind, jobDefinition } from './catalog.ts';
import { IS_WAITING } from './job-conditions.ts';
import { IS_ALIVE } from './lease.ts';

/** By kind of job: the newest version of its payload that a program understands, and with it all versions before. */
export type Understood = Record<string, number>;

const newestVersion = (kind: JobKind): number => jobDefinition(kind).version ?? 1;

/** The version that this program stores with a payload. */
export const versionNeeded = (kind: JobKind, payload: unknown): number =>
  jobDefinition(kind).versionOf?.(payload) ?? newestVersion(kind);

/** What this program understands. */
export const UNDERSTOOD: Understood = Object.fromEntries(
  JOB_KINDS.map(kind => [kind, newestVersion(kind)]),
);

/** The message of a job whose payload is not what a worker takes its version for. */
export const NOT_UNDERSTOOD = 'waiting: no worker understands what was asked for';

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
          jsonb_each_text(understands) as u(kind, version)
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

/** Waiting jobs that no worker of their queue understands, by the version or by what it has found: work of a newer release. */
export async function readNotUnderstood(db: Db): Promise<WaitingKind[]> {
  const understood = await readUnderstoodByQueue(db);
  if (!understood) return [];
  const rows = await db.execute<{ kind: string; version: number; jobs: number }>(sql`
    select kind, payload_version as version, count(*)::int as jobs
    from (select kind, queue, payload_version, message from jobs where ${sql.raw(IS_WAITING)} limit ${MAX_READ}) waiting
    where not ${isUnderstoodInQueue(understood)} or message = ${NOT_UNDERSTOOD}
    group by 1, 2 order by 1, 2`);
  return [...rows];
}

/** One line about what waits. */
export const describeWaiting = ({ kind, version, jobs }: WaitingKind) =>
  `${jobs} ${jobs === 1 ? 'job' : 'jobs'} of kind ${kind} (payload version ${version}) ${jobs === 1 ? 'waits' : 'wait'} for a worker of a newer release`;
