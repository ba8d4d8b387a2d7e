import { and, eq, isNull, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import {
  jobs,
  members,
  type ProjectRow,
  projects,
  type Role,
} from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { cancelJobsOf, publishCancelled } from '../../shared/jobs/cancel.ts';
import {
  checkIfMatch,
  checkIfNoneMatch,
  entityTag,
  sendRecord,
} from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditAs, auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import { answerWithId, operation } from '../openapi/operation.ts';
import { findProject, lockProjectForUpdate, needRole } from '../projects/access.ts';
import {
  aclInput,
  aclRecord,
  changeAcl,
  checkAcl,
  insertAcl,
  lockNamedUsers,
  readAcl,
  roleIn,
} from '../projects/acl.ts';
import { type CacheUse, makeProjectReader, readCacheUse } from '../projects/project-reader.ts';
import { longText, nameText } from '../projects/text-fields.ts';

const description = longText(20_000);
const newProject = (longest: number) =>
  z
    .strictObject({
      name: nameText(longest),
      description: description.default(''),
      acl: aclInput.optional(),
    })
    .meta({ id: 'NewProject' });
const changes = (longest: number) =>
  z
    .strictObject({
      name: nameText(longest).optional(),
      description: description.optional(),
      acl: aclInput.optional(),
    })
    .meta({ id: 'ProjectChanges' });

const projectItem = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    role: z.enum(['administrator', 'writer', 'reader']),
    created: z.date(),
    updated: z.date(),
  })
  .meta({ id: 'ProjectSummary' });
const cacheUse = z
  .object({
    bytes: z.number(),
    limit: z
      .number()
      .describe(
        'LIMIT_CACHE_BYTES: beyond it what was not used for longest is removed. 0: no limit.',
      ),
    oldest: z
      .date()
      .nullable()
      .describe('When the entry that is removed first was last used; null where there is none.'),
  })
  .meta({ id: 'CacheUse' });
const projectRecord = projectItem
  .extend({ acl: aclRecord, cache: cacheUse })
  .meta({ id: 'Project' });

const changedProject = projectRecord
  .extend({
    role: projectItem.shape.role
      .nullable()
      .describe('After the change; null where you took your own part in the project away.'),
  })
  .meta({ id: 'ChangedProject' });

const toProjectItem = <R extends Role | null>(row: ProjectRow, role: R) => ({
  id: row.pid,
  name: row.name,
  description: row.description,
  role,
  created: row.created,
  updated: row.updated,
});

/** Projects: named folders of models with an access list. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const longest = api.config.LIMIT_NAME_LENGTH;
  const readProject = makeProjectReader(api.database);
  const toCacheUse = (use: CacheUse) => ({ ...use, limit: api.config.LIMIT_CACHE_BYTES });
  const readChanged = async (
    tx: Tx,
    row: ProjectRow,
    username: string,
  ): Promise<z.output<typeof changedProject>> => {
    const acl = await readAcl(tx, row.pid);
    const cache = toCacheUse(await readCacheUse(tx, row.pid));
    return { ...toProjectItem(row, roleIn(acl, username)), acl, cache };
  };

  resource(router, '/projects', {
    get: operation({
      id: 'listProjects',
      topic: 'projects',
      summary: 'List the projects that you have a part in',
      details: 'A page has fewer than `limit` where their descriptions are long; `next` leads on.',
      query: pageQuery,
      answers: { 200: { means: 'A page of projects.', json: pageOf('ProjectPage', projectItem) } },
      handle: async ({ res, query }) => {
        const isMine = eq(members.username, currentUser(res).username);
        const ofMembers = eq(projects.pid, members.project);
        const bytes = sql<number>`octet_length(${projects.description})`;
        const sizes = db.select({ bytes }).from(members).innerJoin(projects, ofMembers);
        const reserve = (bytes: number) => api.requestMemory.reserveIfLarge(res, bytes);
        const where = and(isMine, isNull(projects.deleted));
        const order = { by: members.project, key: 'id', where, long: { sizes, reserve } } as const;
        const rows = db
          .select({ project: projects, role: members.role })
          .from(members)
          .innerJoin(projects, ofMembers);
        const page = await readPage(rows, query(), order, row =>
          toProjectItem(row.project, row.role),
        );
        res.json(page);
      },
    }),
    post: operation({
      id: 'createProject',
      topic: 'projects',
      summary: 'Make a project',
      details: 'Its creator is one of its administrators.',
      body: newProject(longest),
      answers: { 201: answerWithId('Made.', 'The project.') },
      handle: async ({ req, res, body }) => {
        const { acl, ...given } = body();
        const me = currentUser(res);
        const user = me.username;
        const named = acl?.administrators ?? [];
        const whole = {
          administrators: [{ user }, ...named.filter(entry => entry.user !== user)],
          writers: acl?.writers ?? [],
          readers: acl?.readers ?? [],
        };
        checkAcl(whole);
        await api.freeSpace.assertFree();
        api.auditRates.countProject(me);
        const pid = newId();
        await db.transaction(async tx => {
          await lockNamedUsers(tx, { ...acl, administrators: [...named, { user }] });
          await tx.insert(projects).values({ pid, ...given });
          await insertAcl(tx, pid, whole);
          if (acl) await auditOf({ req, res })(tx, 'project.acl', pid);
        });
        res.status(201).location(`/api/projects/${pid}`).json({ id: pid });
      },
    }),
  });

  resource(router, '/projects/:pid', {
    get: operation({
      id: 'getProject',
      topic: 'projects',
      summary: 'Look at a project',
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The project.', json: projectRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const pid = pathParameter(req, 'pid');
        const { username } = currentUser(res);
        const { project, role, acl, cache } = await readProject({ pid, username });
        const record = () => ({ ...toProjectItem(project, role), acl, cache: toCacheUse(cache) });
        sendRecord({ req, res }, { tag: projectTag(project, { role, cache }), record });
      },
    }),
    put: operation({
      id: 'changeProject',
      topic: 'projects',
      summary: 'Change a project',
      details:
        'Writers may change name and description, administrators the access list too. A list that is left out stays.',
      body: changes(longest),
      headers: ['If-Match', 'If-None-Match'],
      answers: { 200: { means: 'Changed.', json: changedProject } },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res, body }) => {
        const pid = pathParameter(req, 'pid');
        const { username } = currentUser(res);
        // Access is checked before the body.
        await findProject(db, pid, { username, role: 'writer' });
        const { acl, ...given } = body();
        const role = acl ? 'administrator' : 'writer';
        await findProject(db, pid, { username, role });
        if (given.name !== undefined || given.description !== undefined)
          await api.freeSpace.assertFree();
        const record = await db.transaction(async tx => {
          if (acl) await lockNamedUsers(tx, acl);
          const found = await lockProjectForUpdate(tx, pid, { username, role });
          checkIfMatch(req, entityTag(found.project.version), withoutCache);
          checkIfNoneMatch(req, entityTag(found.project.version), withoutCache);
          if (acl) {
            // What ends somebody's access needs no room: it can be repeated only after a grant.
            const beforeGrant = () => api.freeSpace.assertFree();
            const changed = await changeAcl(tx, { pid, given: acl, beforeGrant });
            // Nor does it wait for room in the rate of grants.
            if (changed === 'revocation')
              await auditAs({ req, res }, username)(tx, 'project.acl', pid);
            else if (changed) await auditOf({ req, res })(tx, 'project.acl', pid);
          }
          const [changed] = await tx
            .update(projects)
            .set({ ...given, version: sql`${projects.version} + 1`, updated: sql`now()` })
            .where(eq(projects.pid, pid))
            .returning();
          return readChanged(tx, changed ?? found.project, username);
        });
        res.json(record);
      },
    }),
    delete: operation({
      id: 'deleteProject',
      topic: 'projects',
      summary: 'Delete a project with all that it holds',
      headers: ['If-Match'],
      answers: { 204: 'Project deleted.' },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res }) => {
        const pid = pathParameter(req, 'pid');
        const cancelled = await db.transaction(async tx => {
          const { project } = await lockProjectForUpdate(tx, pid, needRole(res, 'administrator'));
          checkIfMatch(req, entityTag(project.version), withoutCache);
          await tx
            .update(projects)
            .set({ deleted: sql`now()`, version: sql`${projects.version} + 1` })
            .where(eq(projects.pid, pid));
          await auditOf({ req, res })(tx, 'project.delete', pid);
          return cancelJobsOf(tx, eq(jobs.project, pid));
        });
        publishCancelled(api, cancelled);
        res.statusMessage = 'Project deleted.';
        res.status(204).end();
      },
    }),
  });
});

/** The tag has what the cache holds, which changes without the project, and the reader's own role, which is in the record. */
function projectTag(
  { version }: ProjectRow,
  { role, cache: { bytes, oldest } }: { role: string; cache: CacheUse },
): string {
  const held = oldest ? `-${bytes}-${oldest.getTime().toString(36)}` : '';
  return entityTag(`${version}+${role}${held}`);
}

/** A write depends on the project alone. */
const withoutCache = (tag: string) => tag.replace(/^"(\d+)\+[^"]*"$/, '"$1"');
