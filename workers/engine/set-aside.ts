import { isDeepStrictEqual } from 'node:util';
import { and, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { DUE, isSetAside, isWaiting } from '../../shared/jobs/job-conditions.ts';
import {
  isUnderstood,
  readUnderstoodByQueue,
  type Understood,
} from '../../shared/jobs/payload-versions.ts';

/**
 * Jobs that no worker understands would be looked past at each pick, as many as there are. They are set aside for an hour
 * instead, by their `not_before`, and brought back once a worker understands them. After the hour they are due, also for
 * a dispatcher of an older release, and set aside again (decision 32).
 */
const ASIDE = sql.raw(`interval '1 hour'`);
/** Rows that one call writes. */
const BATCH = 5_000;

/** What is known of the jobs of a queue that no worker understands. */
export interface Understanding {
  queue: QueueName;
  /** What the workers understand, cached for a second: they report it every 3 s. */
  understood?: { until: number; by: Understood | undefined };
  /** Jobs may be set aside that came to be understood. */
  mayBringBack?: boolean;
}

interface Given {
  queue: QueueName;
  /** What the workers of the queue understand. */
  understood: Understood;
}

/** What the workers of the queue understand; undefined where there are none. */
export async function readUnderstood(
  tx: Tx,
  known: Understanding,
): Promise<Understood | undefined> {
  const { until = 0, by: before } = known.understood ?? {};
  if (performance.now() < until) return before;
  const by = (await readUnderstoodByQueue(tx))?.[known.queue];
  known.understood = { until: performance.now() + 1_000, by };
  // Also in a dispatcher that has just begun: what the one before it knew is not known.
  if (by && !isDeepStrictEqual(by, before)) known.mayBringBack = true;
  return by;
}

/** Some work for jobs that are not understood, or came to be; true where more may be left. */
export async function tendToNewer(
  db: Db,
  known: Understanding,
  hidden: string[],
): Promise<boolean> {
  const { queue, understood: { by: understood } = {}, mayBringBack: hasChanged = false } = known;
  if (!understood) return false;
  if (hasChanged) known.mayBringBack = await bringBack(db, { queue, understood });
  if (hidden.length > 0) await setAside(db, { queue, understood, owners: hidden });
  return hasChanged || hidden.length > 0;
}

const isKnown = (understood: Understood) => isUnderstood(sql`${JSON.stringify(understood)}::jsonb`);

/** Sets aside some of those that stand before other jobs of these owners. */
async function setAside(
  db: Db,
  { queue, understood, owners }: Given & { owners: string[] },
): Promise<void> {
  const each = Math.ceil(BATCH / owners.length);
  const due = (which: string) => sql`
    (select id, not ${isKnown(understood)} as hides from jobs
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
  await setNotBefore(db, hiding, sql`now() + ${ASIDE}`);
}

/** Brings back some of those that are understood now; true where more may be left. May read all that are set aside. */
export async function bringBack(db: Db, { queue, understood }: Given): Promise<boolean> {
  const aside = await db.execute<{ id: string }>(sql`
    select id from jobs where queue = ${queue} and ${isWaiting} and ${isSetAside} and ${isKnown(understood)}
    limit ${BATCH}`);
  if (aside.length === 0) return false;
  const ids = sql`select unnest(${`{${aside.map(({ id }) => id).join(',')}}`}::text[])`;
  await setNotBefore(db, ids, sql`now()`);
  return aside.length === BATCH;
}

/** Of those that wait. What somebody has locked, to cancel it, is passed over. */
async function setNotBefore(db: Db, ids: SQL, notBefore: SQL): Promise<void> {
  const unlocked = sql`select id from ${jobs} where ${jobs.id} = any(array(${ids})) for update skip locked`;
  await db
    .update(jobs)
    .set({ notBefore })
    .where(and(sql`${jobs.id} = any(array(${unlocked}))`, isWaiting));
}
