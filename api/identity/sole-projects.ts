import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { members, projects, users } from '../../shared/database/schema.ts';

/**
 * The number of projects that nobody else is in, and of those that the user administers and others may only read or are
 * disabled. The removal of the user deletes the former and leaves the latter to the others, unless it says who gets them
 * (decision 17).
 */
export async function countSoleProjects(db: Db, username: string): Promise<number> {
  const [row] = await db.execute<{ n: number }>(sql`
    select count(*)::int as n
    from ${members} mine join ${projects} p on p.pid = mine.project and p.deleted is null
    where mine.username = ${username} and not exists (
      select from ${members} other
      where other.project = mine.project and other.username <> mine.username
        and (mine.role <> 'administrator' or other.role <> 'reader' and exists (
          select from ${users} u where u.username = other.username and not u.disabled)))`);
  return row?.n ?? 0;
}
