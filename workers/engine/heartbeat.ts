import { hostname } from 'node:os';
import { eq, sql } from 'drizzle-orm';
import { workers } from '../../shared/database/schema.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import { UNDERSTOOD } from '../../shared/jobs/payload-versions.ts';
import { keyIds } from '../../shared/secrets.ts';
import type { WorkerContext } from '../context.ts';

/**
 * Writes every 3 s that this worker is alive, with its slots and metrics; returns what ends that. Metrics are written when
 * they changed: an idle worker writes the time alone.
 */
export async function startHeartbeat(
  context: WorkerContext,
  slots: Record<string, number>,
): Promise<() => Promise<void>> {
  const { db } = context.database;
  let written: string | undefined;

  async function beat(): Promise<void> {
    const metrics = await context.metrics.report();
    const sealKeys = keyIds(context.config.SEAL_PRIVATE_KEYS);
    const text = JSON.stringify([metrics, sealKeys]);
    const [row] = await db
      .insert(workers)
      .values({
        id: context.id,
        host: hostname(),
        pid: process.pid,
        slots,
        metrics,
        understands: UNDERSTOOD,
        sealKeys,
      })
      .onConflictDoUpdate({
        target: workers.id,
        set: { seen: sql`now()`, ...(text === written ? {} : { metrics, sealKeys }) },
      })
      .returning({ id: workers.id });
    if (row) written = text;
  }

  await beat();
  const timer = setInterval(() => {
    beat().catch((error: unknown) =>
      context.log.warn({ err: error }, 'a heartbeat could not be written'),
    );
  }, RENEW_MS);
  return async () => {
    clearInterval(timer);
    context.metrics.close();
    await db.delete(workers).where(eq(workers.id, context.id));
  };
}
