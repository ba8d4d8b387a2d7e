import { and, desc, eq, inArray, isNull, type SQL, sql, sum } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { members, projects } from '../../shared/database/schema.ts';
import { limitPageBytes, MAX_PAGE_BYTES } from '../http/pagination.ts';

/** Bytes of an entry beside name and description. */
const ENTRY_BYTES = 300;
/** Rows whose sizes are read at once. */
const MAX_ROWS = 1_000;

const ofMembers = eq(projects.pid, members.project);
const bytes = sql`${ENTRY_BYTES} + octet_length(${projects.name}) + octet_length(${projects.description})`;
const isMine = (username: string) => and(eq(members.username, username), isNull(projects.deleted));

/** The most bytes that one page of readOwnProjects() has. */
export async function measureOwnProjects(db: Tx, username: string): Promise<number> {
  const [size] = await db
    .select({ bytes: sum(bytes).mapWith(Number) })
    .from(members)
    .innerJoin(projects, ofMembers)
    .where(isMine(username));
  return Math.min(size?.bytes ?? 0, MAX_PAGE_BYTES);
}

/** All projects of a user in pages of a few MiB, the newest first, each with the user's role. */
export async function* readOwnProjects(db: Tx, username: string) {
  let beyond: SQL | undefined;
  for (;;) {
    const sizes = await db
      .select({
        pid: projects.pid,
        // A Date has no microseconds.
        created: sql<string>`${projects.created}::text`,
        bytes: sql`${bytes}`.mapWith(Number),
      })
      .from(members)
      .innerJoin(projects, ofMembers)
      .where(and(isMine(username), beyond))
      .orderBy(desc(projects.created), desc(projects.pid))
      .limit(MAX_ROWS);
    const fitting = sizes.slice(0, limitPageBytes(sizes.map(row => row.bytes)).count);
    const last = fitting.at(-1);
    if (!last) return;
    const pids = fitting.map(({ pid }) => pid);
    yield await db
      .select({ project: projects, role: members.role })
      .from(members)
      .innerJoin(projects, ofMembers)
      .where(and(isMine(username), inArray(projects.pid, pids)))
      .orderBy(desc(projects.created), desc(projects.pid));
    if (fitting.length === sizes.length && sizes.length < MAX_ROWS) return;
    beyond = sql`(${projects.created}, ${projects.pid}) < (${last.created}::timestamptz, ${last.pid})`;
  }
}
