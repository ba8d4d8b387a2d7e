import { sql } from 'drizzle-orm';
import { webhookDeliveries, webhooks } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';
import { removeInBatches } from './remove-in-batches.ts';

/** Deliveries of one statement. */
const BATCH = 1_000;
/** For so long after a job's end a webhook tells what became of its delivery. */
const KEPT_DAYS = 30;

/** Removes what was delivered or given up long ago, and what belongs to no webhook any more. */
export async function removeOldDeliveries({
  database,
  stopping,
}: Pick<WorkerContext, 'database' | 'stopping'>): Promise<void> {
  // Nothing waits for longer than PATIENCE_SECONDS but where its webhook is disabled.
  const isOld = sql`${webhookDeliveries.created} < now() - make_interval(days => ${KEPT_DAYS})`;
  const isOrphan = sql`not exists (select from ${webhooks} where ${webhooks.id} = ${webhookDeliveries.webhook})`;
  for (const which of [isOld, isOrphan])
    await removeInBatches(stopping, BATCH, async () => {
      const rows = await database.db.execute(sql`
        delete from ${webhookDeliveries} where ctid = any(array(
          select ctid from ${webhookDeliveries} where ${which} limit ${BATCH} for update skip locked))
        returning job`);
      return rows.length;
    });
}
