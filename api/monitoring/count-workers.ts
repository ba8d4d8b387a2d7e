import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { workers } from '../../shared/database/schema.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';

interface WorkerCounts {
  alive: number;
  /** The workers that may be the dispatcher. A worker of an older release, which does not say, counts. */
  upkeep: number;
}

/** The workers alive. */
export async function countWorkers(db: Db): Promise<WorkerCounts> {
  const [row] = await db
    .select({
      alive: sql<number>`count(*)::int`,
      upkeep: sql<number>`count(*) filter (where ${workers.upkeep} is distinct from false)::int`,
    })
    .from(workers)
    .where(sql.raw(IS_ALIVE));
  return row ?? { alive: 0, upkeep: 0 };
}
