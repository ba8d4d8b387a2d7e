import { hostname } from 'node:os';
import { eq, sql } from 'drizzle-orm';
import { workers } from '../shared/database/schema.ts';
import { RENEW_MS } from '../shared/jobs/lease.ts';
import type { WorkerContext } from './context.ts';

/** Tells every 3 s that this worker is alive and how much it carries; returns what ends that. */
export async function startHeartbeat(
  context: WorkerContext,
  slots: Record<string, number>,
): Promise<() => Promise<void>> {
  const { db } = context.database;
  const beat = () =>
    db
      .insert(workers)
      .values({ id: context.id, host: hostname(), pid: process.pid, slots })
      .onConflictDoUpdate({ target: workers.id, set: { seen: sql`now()` } });
  await beat();
  const timer = setInterval(() => {
    beat().catch((error: unknown) => context.log.warn({ err: error }, 'no heartbeat'));
  }, RENEW_MS);
  return async () => {
    clearInterval(timer);
    await db.delete(workers).where(eq(workers.id, context.id));
  };
}
