import { type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { webhookDeliveries, webhooks } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';
import { removeRows } from './remove-in-batches.ts';

/** For so long after a job's end a webhook tells what became of its delivery. */
const KEPT_DAYS = 30;

/** Removes deliveries that were made or given up long ago, and those without a webhook. */
export async function removeOldDeliveries(
  context: Pick<WorkerContext, 'database' | 'stopping'>,
): Promise<void> {
  const remove = (which: SQL) => removeRows(context, webhookDeliveries, which);
  // Nothing waits for longer than GIVE_UP_SECONDS but where its webhook is disabled.
  await remove(sql`${webhookDeliveries.created} < now() - make_interval(days => ${KEPT_DAYS})`);
  for (const webhook of await findOrphaned(context.database.db))
    await remove(sql`${webhookDeliveries.webhook} = ${webhook}`);
}

/** Removed webhooks that have deliveries, by a skip scan: one step of the index per webhook. */
async function findOrphaned(db: Db): Promise<string[]> {
  const rows = await db.execute<{ webhook: string }>(sql`
    with recursive sent_to (webhook) as (
      (select webhook from ${webhookDeliveries} order by webhook limit 1)
      union all
      select (select webhook from ${webhookDeliveries} where webhook > sent_to.webhook order by webhook limit 1)
      from sent_to where sent_to.webhook is not null
    )
    select webhook from sent_to
    where webhook is not null and not exists (select from ${webhooks} where id = sent_to.webhook)`);
  return rows.map(({ webhook }) => webhook);
}
