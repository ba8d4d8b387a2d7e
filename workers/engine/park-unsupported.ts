import { isDeepStrictEqual } from 'node:util';
import { and, type SQL, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { DUE, isParked, isWaiting } from '../../shared/jobs/job-conditions.ts';
import {
  isSupported,
  readSupportedByQueue,
  type SupportedVersions,
} from '../../shared/jobs/payload-versions.ts';

/**
 * Jobs that no worker supports would be looked past at each pick, as many as there are. They are parked for an hour
 * instead, by their `not_before`, until a worker supports them. After the hour they are due, also for a dispatcher of an
 * older release, and parked again (decision 32).
 */
const PARKED_FOR = sql.raw(`interval '1 hour'`);
/** Rows that one call writes. */
const BATCH = 5_000;

/** What is known of the jobs of a queue that no worker supports. */
export interface QueueSupport {
  queue: QueueName;
  /** What the workers support, cached for a second: they report it every 3 s. */
  supported?: { until: number; by: SupportedVersions | undefined };
  /** Jobs may be parked that came to be supported. */
  mayUnpark?: boolean;
}

interface Given {
  queue: QueueName;
  /** What the workers of the queue support. */
  supported: SupportedVersions;
}

/** What the workers of the queue support; undefined where there are none. */
export async function readSupported(
  tx: Tx,
  known: QueueSupport,
): Promise<SupportedVersions | undefined> {
  const { until = 0, by: before } = known.supported ?? {};
  if (performance.now() < until) return before;
  const by = (await readSupportedByQueue(tx))?.[known.queue];
  known.supported = { until: performance.now() + 1_000, by };
  // Also in a dispatcher that has just begun: what the one before it knew is not known.
  if (by && !isDeepStrictEqual(by, before)) known.mayUnpark = true;
  return by;
}

/** Parks some jobs that are not supported, and unparks some that came to be; true where more may be left. */
export async function updateParked(
  db: Db,
  known: QueueSupport,
  hidden: string[],
): Promise<boolean> {
  const { queue, supported: { by: supported } = {}, mayUnpark: hasChanged = false } = known;
  if (!supported) return false;
  if (hasChanged) known.mayUnpark = await unpark(db, { queue, supported });
  if (hidden.length > 0) await parkUnsupported(db, { queue, supported, owners: hidden });
  return hasChanged || hidden.length > 0;
}

const isSupportedBy = (supported: SupportedVersions) =>
  isSupported(sql`${JSON.stringify(supported)}::jsonb`);

/** Parks some of those that stand before other jobs of these owners. */
async function parkUnsupported(
  db: Db,
  { queue, supported, owners }: Given & { owners: string[] },
): Promise<void> {
  const each = Math.ceil(BATCH / owners.length);
  const due = (which: string) => sql`
    (select id, not ${isSupportedBy(supported)} as hides from jobs
      where queue = ${queue} and ${isWaiting} and owner = its.owner and ${sql.raw(which)}
      order by not_before, id limit ${each})`;
  const hiding = sql`
    select first.id from jsonb_array_elements_text(${JSON.stringify(owners)}::jsonb) its(owner) cross join lateral (
      ${due(DUE.released)}
      union all
      ${due(DUE.fresh)}
      union all
      ${due(DUE.unreachable)}
    ) first where hides limit ${BATCH}`;
  await setNotBefore(db, sql`any(array(${hiding}))`, sql`now() + ${PARKED_FOR}`);
}

/** Makes some due that are supported now; true where more may be left. May read all that are parked. */
export async function unpark(db: Db, { queue, supported }: Given): Promise<boolean> {
  const parked = await db.execute<{ id: string }>(sql`
    select id from jobs where queue = ${queue} and ${isWaiting} and ${isParked} and ${isSupportedBy(supported)}
    limit ${BATCH}`);
  if (parked.length === 0) return false;
  await setNotBefore(db, anyOf(parked.map(({ id }) => id)), sql`now()`);
  return parked.length === BATCH;
}

/** Selects waiting jobs only. A job that somebody has locked, to cancel it, is passed over. */
async function setNotBefore(db: Db, amongIds: SQL, notBefore: SQL): Promise<void> {
  const unlocked = sql`select id from ${jobs} where ${jobs.id} = ${amongIds} for update skip locked`;
  await db
    .update(jobs)
    .set({ notBefore })
    .where(and(sql`${jobs.id} = any(array(${unlocked}))`, isWaiting));
}
