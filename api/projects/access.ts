import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Response } from 'express';
import type { Tx } from '../../shared/database/connect.ts';
import {
  type ModelRow,
  members,
  models,
  type ProjectRow,
  projects,
  type Role,
} from '../../shared/database/schema.ts';
import { forbidden, notFound, type WindlassError } from '../../shared/errors/errors.ts';
import { isId } from '../../shared/ids.ts';
import { withArticle } from '../../shared/uploads/parsers.ts';
import { currentUser } from '../identity/current-user.ts';

/** Each role includes the rights of lower ranks. */
const RANK = { reader: 0, writer: 1, administrator: 2 } as const satisfies Record<Role, number>;

/** The user, and the least role they need in the project. */
export interface RoleRequirement {
  username: string;
  role: Role;
}

/** The role that the user of a request needs. */
export const needRole = (res: Response, role: Role): RoleRequirement => ({
  username: currentUser(res).username,
  role,
});

export interface ProjectAccess {
  project: ProjectRow;
  role: Role;
}

interface ModelAccess extends ProjectAccess {
  model: ModelRow;
}

/** The project, for reading. Throws `not_found` when the user is no member, `forbidden` when the role is too low. */
export async function findProject(
  db: Tx,
  pid: string,
  need: RoleRequirement,
): Promise<ProjectAccess> {
  const [found] = isId(pid) ? await selectProject(db, pid, need.username) : [];
  return requireProjectRole(found, need);
}

/** Throws `not_found` where nothing was found for the user, `forbidden` when the role is too low. */
export const requireProjectRole = <T extends ProjectAccess>(
  found: T | undefined,
  need: RoleRequirement,
): T => requireRole(found, need, unknownProject);

/** Locks, then reads: a statement that waited for the lock would see the earlier access list. */
const lockProject =
  (lock: 'share' | 'update') =>
  async (tx: Tx, pid: string, need: RoleRequirement): Promise<ProjectAccess> => {
    if (isId(pid))
      await tx.select({ pid: projects.pid }).from(projects).where(eq(projects.pid, pid)).for(lock);
    return findProject(tx, pid, need);
  };

/** The project, for writing below it. Until the caller's transaction commits, nobody deletes it or changes its access list. */
export const lockProjectForShare = lockProject('share');

/** The project, for changing it. Until the caller's transaction commits, nobody else changes it or writes below it. */
export const lockProjectForUpdate = lockProject('update');

/** The model with its project, for reading. */
export async function findModel(db: Tx, mid: string, need: RoleRequirement): Promise<ModelAccess> {
  const [found] = isId(mid) ? await selectModel(db, mid, need.username) : [];
  return requireRole(found, need, unknownModel);
}

/** The model, for writing it or below it. It and its project exist until the caller's transaction commits. */
export async function lockModel(tx: Tx, mid: string, need: RoleRequirement): Promise<ModelAccess> {
  // The project first, as everywhere, to avoid deadlocks.
  const before = await findModel(tx, mid, need);
  await lockProjectForShare(tx, before.project.pid, need);
  const [found] = await selectModel(tx, mid, need.username).for('update', { of: models });
  return requireRole(found, need, unknownModel);
}

/** Increments and returns the model's version. Artifacts take it as theirs, so that a new one never has the tag of a deleted one. */
export async function bumpModel(tx: Tx, mid: string, addedBytes = 0): Promise<number> {
  const [row] = await tx
    .update(models)
    .set({
      bytes: sql`${models.bytes} + ${addedBytes}`,
      version: sql`${models.version} + 1`,
      updated: sql`now()`,
    })
    .where(eq(models.mid, mid))
    .returning({ version: models.version });
  if (!row) throw new Error(`model ${mid} is gone`);
  return row.version;
}

function selectProject(db: Tx, pid: string, username: string) {
  return db
    .select({ project: projects, role: members.role })
    .from(projects)
    .innerJoin(members, and(eq(members.project, projects.pid), eq(members.username, username)))
    .where(and(eq(projects.pid, pid), isNull(projects.deleted)));
}

function selectModel(db: Tx, mid: string, username: string) {
  return db
    .select({ model: models, project: projects, role: members.role })
    .from(models)
    .innerJoin(projects, eq(projects.pid, models.project))
    .innerJoin(members, and(eq(members.project, projects.pid), eq(members.username, username)))
    .where(and(eq(models.mid, mid), isNull(projects.deleted)));
}

function requireRole<T extends ProjectAccess>(
  found: T | undefined,
  { role }: RoleRequirement,
  unknown: () => WindlassError,
): T {
  if (!found) throw unknown();
  if (RANK[found.role] >= RANK[role]) return found;
  throw forbidden(
    `you are a ${found.role} of this project, and this needs ${withArticle(role)}.`,
    'Ask one of the administrators of the project.',
  );
}

const unknownProject = () =>
  notFound('there is no such project.', 'GET /api/projects lists those that you are a member of.');

const unknownModel = () =>
  notFound(
    'there is no such model.',
    'GET /api/projects/(pid)/models lists the models of a project.',
  );
