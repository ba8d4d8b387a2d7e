import { hostname } from 'node:os';
import { eq, sql } from 'drizzle-orm';
import { failureLevel } from '../../shared/database/failure-level.ts';
import { workers } from '../../shared/database/schema.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import { SUPPORTED_VERSIONS } from '../../shared/jobs/payload-versions.ts';
import { RELEASE } from '../../shared/process/release.ts';
import { keyIds } from '../../shared/secrets/secrets.ts';
import type { WorkerContext } from '../context.ts';

/**
 * Writes every 3 s that this worker is alive, with its slots and metrics. Returns what stops it. Metrics are written
 * only when they changed.
 */
export async function startHeartbeat(
  context: WorkerContext,
  {
    slots,
    upkeep,
    onDraining,
  }: { slots: Record<string, number>; upkeep: boolean; onDraining(draining: boolean): void },
): Promise<() => Promise<void>> {
  const { db } = context.database;
  let written: string | undefined;
  let draining = false;

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
        upkeep,
        metrics,
        supports: SUPPORTED_VERSIONS,
        release: RELEASE,
        sealKeys,
      })
      .onConflictDoUpdate({
        target: workers.id,
        set: { seen: sql`now()`, ...(text === written ? {} : { metrics, sealKeys }) },
      })
      .returning({ draining: workers.draining });
    if (!row) return;
    written = text;
    if (row.draining === draining) return;
    draining = row.draining;
    context.log.info(draining ? 'draining: no more jobs are taken' : 'jobs are taken again');
    onDraining(draining);
  }

  const tryBeat = () =>
    void beat().catch((error: unknown) =>
      context.log[failureLevel(error)]({ err: error }, 'a heartbeat could not be written'),
    );

  await beat();
  const timer = setInterval(tryBeat, RENEW_MS);
  const unsubscribe = context.notifications.on('worker', id => {
    if (id === context.id) tryBeat();
  });
  return async () => {
    clearInterval(timer);
    unsubscribe();
    context.metrics.close();
    await db.delete(workers).where(eq(workers.id, context.id));
  };
}

/** Withdraws the slots of a stopping worker. Its running jobs and its heartbeat go on. */
export async function withdrawSlots({
  id,
  database,
}: Pick<WorkerContext, 'id' | 'database'>): Promise<void> {
  const none = sql`(select coalesce(jsonb_object_agg(queue, 0), '{}') from jsonb_object_keys(${workers.slots}) queue)`;
  await database.db.update(workers).set({ slots: none }).where(eq(workers.id, id));
}
