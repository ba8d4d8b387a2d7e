import { and, eq, isNull } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import {
  type ModelRow,
  members,
  models,
  type ProjectRow,
  projects,
  type Role,
} from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { isId } from '../../shared/ids.ts';

/** Each role may do what the ones before it may. */
const RANK = { reader: 0, writer: 1, administrator: 2 } as const satisfies Record<Role, number>;

/** Who asks, and which part in the project they need at least. */
export interface RoleRequirement {
  username: string;
  role: Role;
}

export interface ProjectAccess {
  project: ProjectRow;
  role: Role;
}

export interface ModelAccess extends ProjectAccess {
  model: ModelRow;
}

/** The project, for reading. 404 where the user has no part in it, 403 where it is too small a part. */
export async function findProject(
  db: Tx,
  pid: string,
  need: RoleRequirement,
): Promise<ProjectAccess> {
  const [found] = isId(pid) ? await selectProject(db, pid, need.username) : [];
  return requireRole(found, need, unknownProject);
}

/**
 * The project, for writing below it: it cannot be deleted, nor its access list be changed, before the caller's transaction
 * commits.
 */
export function lockProjectForShare(
  tx: Tx,
  pid: string,
  need: RoleRequirement,
): Promise<ProjectAccess> {
  return findLocked(tx, pid, { ...need, lock: 'share' });
}

/** The project, for changing it: nobody else does so, nor writes below it, before the caller's transaction commits. */
export function lockProjectForUpdate(
  tx: Tx,
  pid: string,
  need: RoleRequirement,
): Promise<ProjectAccess> {
  return findLocked(tx, pid, { ...need, lock: 'update' });
}

/** Locked first and then read: who waited for a change of the access list must not go by the old one. */
async function findLocked(
  tx: Tx,
  pid: string,
  { lock, ...need }: RoleRequirement & { lock: 'share' | 'update' },
): Promise<ProjectAccess> {
  if (isId(pid))
    await tx.select({ pid: projects.pid }).from(projects).where(eq(projects.pid, pid)).for(lock);
  return findProject(tx, pid, need);
}

/** The model with its project, for reading. */
export async function findModel(db: Tx, mid: string, need: RoleRequirement): Promise<ModelAccess> {
  const [found] = isId(mid) ? await selectModel(db, mid, need.username) : [];
  return requireRole(found, need, unknownModel);
}

/** The model, for writing it or below it: it and its project stay until the caller's transaction commits. */
export async function lockModel(tx: Tx, mid: string, need: RoleRequirement): Promise<ModelAccess> {
  // The project first, as everywhere, so that no two transactions wait for each other.
  const before = await findModel(tx, mid, need);
  await lockProjectForShare(tx, before.project.pid, need);
  const [found] = await selectModel(tx, mid, need.username).for('update', { of: models });
  return requireRole(found, need, unknownModel);
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
  throw new WindlassError('forbidden', {
    detail: `Forbidden: you are a ${found.role} of this project, and this needs a ${role}.`,
    hint: 'Ask one of the administrators of the project.',
  });
}

const unknownProject = () =>
  new WindlassError('not_found', {
    detail: 'Not found: there is no such project.',
    hint: 'GET /api/projects lists those that you have a part in.',
  });

const unknownModel = () =>
  new WindlassError('not_found', {
    detail: 'Not found: there is no such model.',
    hint: 'GET /api/projects/(pid)/models lists those of a project.',
  });
