import { and, asc, eq, isNull, notInArray, or, type SQL, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Db, Tx } from '../../shared/database/connect.ts';
import { members, projects, users } from '../../shared/database/schema.ts';
import type { WriteAudit } from './audit.ts';

/** Projects of one statement, which may take 10 s. */
const BATCH = 1_000;

interface Leaver {
  username: string;
  heir: string | undefined;
  audit: WriteAudit;
}

/** Whether the user is in too many projects for the transaction that removes the user. */
export async function hasManyProjects(db: Db, username: string): Promise<boolean> {
  const rows = await selectProjects(db, username).offset(BATCH).limit(1);
  return rows.length > 0;
}

/** Leaves all projects, and returns those that were deleted: see leaveSomeProjects(). */
export async function leaveProjects(tx: Tx, leaver: Leaver): Promise<string[]> {
  const all: string[] = [];
  for (let some = await leaveSomeProjects(tx, leaver); some; ) {
    all.push(...some);
    some = await leaveSomeProjects(tx, leaver);
  }
  return all;
}

/**
 * Removes some of the user's memberships. A project that the user administered makes its writers administrators where no
 * other administrator may log in. One without members is given to the heir, and so is one that the user administered and
 * nobody else who may log in could govern. Where there is no heir, the latter stays to its members, disabled writers as
 * administrators, and one without members is deleted and returned here. Undefined: no membership was left.
 */
export async function leaveSomeProjects(
  tx: Tx,
  { username, heir, audit }: Leaver,
): Promise<string[] | undefined> {
  const some = (await selectProjects(tx, username).limit(BATCH)).map(row => row.pid);
  if (some.length === 0) return undefined;
  await tx
    .select({ pid: projects.pid })
    .from(projects)
    .where(isAmong(projects.pid, some))
    .orderBy(asc(projects.pid))
    .for('update');
  const left = await tx
    .delete(members)
    .where(and(eq(members.username, username), isAmong(members.project, some)))
    .returning({ pid: members.project, role: members.role });
  const pids = left.map(row => row.pid);
  if (pids.length === 0) return [];
  await audit(tx, 'project.acl', pids);
  await tx
    .update(projects)
    .set({ version: sql`${projects.version} + 1`, updated: sql`now()` })
    .where(isAmong(projects.pid, pids));
  const withAny = tx
    .select({ pid: members.project })
    .from(members)
    .where(isAmong(members.project, pids));
  const governed = left.filter(row => row.role === 'administrator').map(row => row.pid);
  const withRuler = tx
    .select({ pid: members.project })
    .from(members)
    .where(and(isAmong(members.project, governed), eq(members.role, 'administrator'), mayLogIn));
  await promoteWriters(
    tx,
    and(isAmong(members.project, governed), notInArray(members.project, withRuler), mayLogIn),
  );
  const areOpen = and(isAmong(projects.pid, pids), isNull(projects.deleted));
  const areEmpty = notInArray(projects.pid, withAny);
  const areLost = and(isAmong(projects.pid, governed), notInArray(projects.pid, withRuler));
  if (heir !== undefined) {
    await tx.execute(sql`
      insert into ${members} (project, username, role)
      select pid, ${heir}, 'administrator' from ${projects}
      where ${and(areOpen, or(areEmpty, areLost))}
      on conflict (project, username) do update set role = excluded.role`);
    return [];
  }
  const administered = tx
    .select({ pid: members.project })
    .from(members)
    .where(and(isAmong(members.project, pids), eq(members.role, 'administrator')));
  await promoteWriters(
    tx,
    and(isAmong(members.project, pids), notInArray(members.project, administered)),
  );
  const emptied = await tx
    .update(projects)
    .set({ deleted: sql`now()` })
    .where(and(areOpen, areEmpty))
    .returning({ pid: projects.pid });
  const deleted = emptied.map(row => row.pid);
  await audit(tx, 'project.delete', deleted);
  return deleted;
}

/** In the order in which they are locked. */
const selectProjects = (tx: Tx, username: string) =>
  tx
    .select({ pid: members.project })
    .from(members)
    .where(eq(members.username, username))
    .orderBy(asc(members.project))
    .$dynamic();

/** Of a member. */
const mayLogIn = sql`exists (
  select from ${users} where ${users.username} = ${members.username} and not ${users.disabled})`;

const promoteWriters = (tx: Tx, which: SQL | undefined) =>
  tx
    .update(members)
    .set({ role: 'administrator' })
    .where(and(eq(members.role, 'writer'), which));

const isAmong = (column: typeof members.project | typeof projects.pid, pids: string[]) =>
  sql`${column} = ${anyOf(pids)}`;
