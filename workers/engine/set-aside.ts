import { and, type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { isSetAside, isWaiting } from '../../shared/jobs/job-conditions.ts';
import { isUnderstood, type Understood } from '../../shared/jobs/payload-versions.ts';

/**
 * Jobs that no worker understands would be looked past at each pick, as many as there are. They are set aside for an hour
 * instead, by their `not_before`, and brought back once a worker understands them. After the hour they are due, also for
 * a dispatcher of an older release, and set aside again (decision 32).
 */
const ASIDE = sql.raw(`interval '1 hour'`);
/** Rows that one call writes. */
const BATCH = 5_000;

interface Given {
  queue: QueueName;
  /** What the workers of the queue understand. */
  understood: Understood;
}

const isKnown = (understood: Understood) => isUnderstood(sql`${JSON.stringify(understood)}::jsonb`);

/** Sets aside some of those that stand before other jobs of these owners. */
export async function setAside(
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
      ${due('num_nonnulls(unreachable_since) = 0 and not_before <= now()')}
      union all
      ${due('num_nonnulls(unreachable_since) = 0 and not_before is null')}
      union all
      ${due('num_nonnulls(unreachable_since) = 1 and not_before <= now()')}
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
