import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { JOB_KINDS, type JobKind, jobDefinition } from './catalog.ts';
import { IS_WAITING } from './job-conditions.ts';
import { IS_ALIVE } from './lease.ts';

/** By kind of job: the newest version of its payload that a program supports, and with it all versions before. */
export type SupportedVersions = Record<string, number>;

const newestVersion = (kind: JobKind): number => jobDefinition(kind).version ?? 1;

/** The version that this program stores with a payload. */
export const versionNeeded = (kind: JobKind, payload: unknown): number =>
  jobDefinition(kind).versionOf?.(payload) ?? newestVersion(kind);

/** What this program supports. */
export const SUPPORTED_VERSIONS: SupportedVersions = Object.fromEntries(
  JOB_KINDS.map(kind => [kind, newestVersion(kind)]),
);

/** The message of a job whose payload is not what a worker takes its version for. */
export const UNSUPPORTED = 'waiting: no worker understands what was asked for';

/** Waiting jobs that are looked at, at most. */
const MAX_READ = 50_000;

/** Whether the job of a row is supported. */
export const isSupported = (supported: SQL) =>
  sql`payload_version <= coalesce((${supported} ->> kind)::int, 0)`;

/**
 * What the live workers of each queue support: a job that none of them supports is not given to one that would
 * return it again and again. Under '' what any live worker supports, for queues that none serves.
 */
type SupportedByQueue = Record<string, SupportedVersions>;

/** Undefined where no worker is alive. */
export async function readSupportedByQueue(db: Db): Promise<SupportedByQueue | undefined> {
  const [row] = await db.execute<{ supported: SupportedByQueue | null }>(sql`
    select jsonb_object_agg(queue, versions) as supported from (
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
  return row?.supported ?? undefined;
}

/** Whether the job of a row is supported by the workers of its queue. */
export function isSupportedInQueue(supported: SupportedByQueue): SQL {
  const json = sql`${JSON.stringify(supported)}::jsonb`;
  return isSupported(sql`coalesce(${json} -> queue, ${json} -> '')`);
}

export interface UnsupportedJobs {
  kind: string;
  version: number;
  jobs: number;
}

/** Waiting jobs that no worker of their queue supports, by the version or by what it has found: work of a newer release. */
export async function readUnsupported(db: Db): Promise<UnsupportedJobs[]> {
  const supported = await readSupportedByQueue(db);
  if (!supported) return [];
  const rows = await db.execute<{ kind: string; version: number; jobs: number }>(sql`
    select kind, payload_version as version, count(*)::int as jobs
    from (select kind, queue, payload_version, message from jobs where ${sql.raw(IS_WAITING)} limit ${MAX_READ}) waiting
    where not ${isSupportedInQueue(supported)} or message = ${UNSUPPORTED}
    group by 1, 2 order by 1, 2`);
  return [...rows];
}

/** One line about what waits. */
export const describeUnsupported = ({ kind, version, jobs }: UnsupportedJobs) =>
  `${jobs} ${jobs === 1 ? 'job' : 'jobs'} of kind ${kind} (payload version ${version}) ${jobs === 1 ? 'waits' : 'wait'} for a worker of a newer release`;
