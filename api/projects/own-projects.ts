import { and, desc, eq, gte, isNull, lt, lte, type SQL, sql, sum } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { members, projects } from '../../shared/database/schema.ts';
import { limitPageBytes, MAX_PAGE_BYTES } from '../http/pagination.ts';

/** Bytes of an entry besides its name and description. */
const ENTRY_BYTES = 300;
/** Rows whose sizes are read at once. */
const MAX_ROWS = 1_000;

const ofMembers = eq(projects.pid, members.project);
const bytes = sql`${ENTRY_BYTES} + octet_length(${projects.name}) + octet_length(${projects.description})`;
const isMine = (username: string) => and(eq(members.username, username), isNull(projects.deleted));
/** Compares the ids in both tables: the planner does not derive one condition from the other. */
const ofBoth = (compare: typeof lt, pid: string) =>
  and(compare(projects.pid, pid), compare(members.project, pid));

/** The most bytes that one page of readOwnProjects() has. */
export async function measureOwnProjects(db: Tx, username: string): Promise<number> {
  const [size] = await db
    .select({ bytes: sum(bytes).mapWith(Number) })
    .from(members)
    .innerJoin(projects, ofMembers)
    .where(isMine(username));
  return Math.min(size?.bytes ?? 0, MAX_PAGE_BYTES);
}

/** All projects of a user, each with the user's role, in pages of a few MiB, by descending id: the newest first. */
export async function* readOwnProjects(db: Tx, username: string) {
  let beyond: SQL | undefined;
  for (;;) {
    // In the order of the indexes of both tables: no page sorts all of them again.
    const sizes = await db
      .select({ pid: projects.pid, bytes: sql`${bytes}`.mapWith(Number) })
      .from(members)
      .innerJoin(projects, ofMembers)
      .where(and(isMine(username), beyond))
      .orderBy(desc(projects.pid))
      .limit(MAX_ROWS);
    const { count } = limitPageBytes(sizes.map(row => row.bytes));
    const [first, last] = [sizes[0]?.pid, sizes[count - 1]?.pid];
    if (first === undefined || last === undefined) return;
    yield await db
      .select({ project: projects, role: members.role })
      .from(members)
      .innerJoin(projects, ofMembers)
      .where(and(isMine(username), ofBoth(lte, first), ofBoth(gte, last)))
      .orderBy(desc(projects.pid));
    if (count === sizes.length && count < MAX_ROWS) return;
    beyond = ofBoth(lt, last);
  }
}
