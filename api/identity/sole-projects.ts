import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { members, projects } from '../../shared/database/schema.ts';

/**
 * The number of projects that nobody else is in, and of those that the user administers and others may only read. The
 * removal of the user deletes the former and leaves the latter to their readers, unless it says who gets them (decision 17).
 */
export async function countSoleProjects(db: Db, username: string): Promise<number> {
  const [row] = await db.execute<{ n: number }>(sql`
    select count(*)::int as n
    from ${members} mine join ${projects} p on p.pid = mine.project and p.deleted is null
    where mine.username = ${username} and not exists (
      select from ${members} other
      where other.project = mine.project and other.username <> mine.username
        and (other.role <> 'reader' or mine.role <> 'administrator'))`);
  return row?.n ?? 0;
}
