import { sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { workers } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors/errors.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';
import { versionsOf } from '../../shared/jobs/payload-versions.ts';

/** Throws `conflict` while a worker of the previous release is alive, which would end the sessions on a host that has this. */
export async function refuseOlderWorkers(tx: Tx, what: string): Promise<void> {
  const needed = versionsOf('connect').newer;
  const [older] = await tx.execute<{ id: string }>(sql`select id from ${workers}
    where ${sql.raw(IS_ALIVE)}
      and coalesce((understands ->> 'connect')::int, 1) < ${needed} limit 1`);
  if (older)
    throw conflict(
      `the worker ${older.id} is of a release that knows no ${what}.`,
      `Replace all workers before a host gets ${what}.`,
    );
}
