import { asc, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { members, type Role } from '../../shared/database/schema.ts';
import { invalidInput } from '../http/validate.ts';
import { lockNamed } from '../identity/lock-user.ts';

const entry = z.strictObject({ user: z.string().min(1).max(64) }).meta({ id: 'Member' });
const list = z.array(entry).max(1_000);

/** The access list of a project, as clients send it: omitted lists do not change. */
export const aclInput = z
  .strictObject({
    administrators: list.optional(),
    writers: list.optional(),
    readers: list.optional(),
  })
  .meta({ id: 'AccessListChanges' });
type AclInput = z.output<typeof aclInput>;

export const aclRecord = z
  .object({
    administrators: z.array(entry),
    writers: z.array(entry),
    readers: z.array(entry),
  })
  .meta({ id: 'AccessList' });
export type Acl = z.output<typeof aclRecord>;

type List = keyof Acl;
const LISTS = ['administrators', 'writers', 'readers'] as const satisfies List[];
const ROLES = {
  administrators: 'administrator',
  writers: 'writer',
  readers: 'reader',
} as const satisfies Record<List, Role>;

export async function readAcl(db: Tx, pid: string): Promise<Acl> {
  const rows = await db
    .select({ user: members.username, role: members.role })
    .from(members)
    .where(eq(members.project, pid))
    .orderBy(asc(members.username));
  return toAcl(rows);
}

export function toAcl(members: { user: string; role: Role }[]): Acl {
  const having = (role: Role) =>
    members.filter(member => member.role === role).map(({ user }) => ({ user }));
  return {
    administrators: having('administrator'),
    writers: having('writer'),
    readers: having('reader'),
  };
}

export const roleIn = (acl: Acl, username: string): Role | null => {
  const list = LISTS.find(list => acl[list].some(({ user }) => user === username));
  return list ? ROLES[list] : null;
};

/**
 * Locks the named users, so that no membership outlives its user. Throws `invalid_input` that names every unknown user. Call it
 * before locking a project (lock order: removeUser()).
 */
export async function lockNamedUsers(tx: Tx, acl: AclInput): Promise<void> {
  const named = LISTS.flatMap(list =>
    (acl[list] ?? []).map(({ user }, i) => ({ user, field: `acl.${list}.${i}.user` })),
  );
  if (named.length === 0) return;
  const known = await lockNamed(
    tx,
    named.map(({ user }) => user),
  );
  refuse(
    named
      .filter(({ user }) => !known.has(user))
      .map(({ user, field }) => ({ field, problem: `there is no user ${user}` })),
  );
}

/**
 * Replaces the given lists. Tells whether somebody got more rights, or only less; undefined: nothing changed. `beforeGrant` is
 * awaited before somebody gets more.
 * Throws `invalid_input` when a user would have two roles, or no administrator would remain.
 */
export async function changeAcl(
  tx: Tx,
  { pid, given, beforeGrant }: { pid: string; given: AclInput; beforeGrant(): Promise<void> },
): Promise<'grant' | 'revocation' | undefined> {
  const acl = await readAcl(tx, pid);
  const next: Acl = { ...acl, ...given };
  checkAcl(next);
  const [had, has] = [ranksOf(acl), ranksOf(next)];
  const isGrant = [...has].some(([user, rank]) => rank > (had.get(user) ?? -1));
  if (isGrant) await beforeGrant();
  else if ([...had].every(([user, rank]) => rank === has.get(user))) return undefined;
  await tx.delete(members).where(eq(members.project, pid));
  await insertAcl(tx, pid, next);
  return isGrant ? 'grant' : 'revocation';
}

/** The higher, the more rights. */
const ranksOf = (acl: Acl) =>
  new Map(LISTS.toReversed().flatMap((list, rank) => acl[list].map(({ user }) => [user, rank])));

export async function insertAcl(tx: Tx, pid: string, acl: Acl): Promise<void> {
  const rows = LISTS.flatMap(list =>
    acl[list].map(({ user }) => ({ project: pid, username: user, role: ROLES[list] })),
  );
  await tx.insert(members).values(rows);
}

export function checkAcl(acl: Acl): void {
  const listOf = new Map<string, List>();
  const problems = LISTS.flatMap(list =>
    acl[list].flatMap(({ user }, i) => {
      const other = listOf.get(user);
      listOf.set(user, list);
      return other
        ? [{ field: `acl.${list}.${i}.user`, problem: `${user} is among the ${other} already` }]
        : [];
    }),
  );
  if (acl.administrators.length === 0)
    problems.push({ field: 'acl.administrators', problem: 'must name at least one user' });
  refuse(problems);
}

function refuse(fields: { field: string; problem: string }[]): void {
  if (fields.length === 0) return;
  throw invalidInput(
    fields,
    'Name each user of the service in one of the three lists; an omitted list does not change.',
  );
}
