import { and, count, desc, eq, isNull, sql, sum } from 'drizzle-orm';
import { z } from 'zod';
import { members, projects } from '../../shared/database/schema.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser } from '../identity/current-user.ts';
import { operation } from '../openapi/operation.ts';

/** Bytes of an entry beside name and description. */
const ENTRY_BYTES = 300;

const listedProject = z
  .object({
    _id: z.string(),
    name: z.string(),
    description: z.string(),
    role: z.enum(['administrator', 'writer', 'reader']),
    created: z.date(),
    updated: z.date(),
  })
  .meta({ id: 'ListedProject' });

/** All projects of a user in one answer, as clients of Slycat read them: docs/slycat.md. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  resource(router, '/projects_list', {
    get: operation({
      id: 'listAllProjects',
      topic: 'projects',
      summary: 'List all projects that you have a part in, as clients of Slycat read it',
      details: 'The newest first. GET /projects has them in pages.',
      answers: {
        200: {
          means: 'The projects.',
          json: z.object({ projects: z.array(listedProject) }).meta({ id: 'AllProjects' }),
        },
      },
      handle: async ({ res }) => {
        const ofMembers = eq(projects.pid, members.project);
        const isMine = and(
          eq(members.username, currentUser(res).username),
          isNull(projects.deleted),
        );
        const texts = sql`octet_length(${projects.name}) + octet_length(${projects.description})`;
        const [size] = await db
          .select({ entries: count(), bytes: sum(texts).mapWith(Number) })
          .from(members)
          .innerJoin(projects, ofMembers)
          .where(isMine);
        const { entries = 0, bytes } = size ?? {};
        // They are held twice, as rows and as JSON.
        await api.requestMemory.reserveIfLarge(res, 2 * ((bytes ?? 0) + entries * ENTRY_BYTES));
        const rows = await db
          .select({ project: projects, role: members.role })
          .from(members)
          .innerJoin(projects, ofMembers)
          .where(isMine)
          .orderBy(desc(projects.created), desc(projects.pid));
        res.json({
          projects: rows.map(({ project: { pid, name, description, created, updated }, role }) => ({
            _id: pid,
            name,
            description,
            role,
            created,
            updated,
          })),
        });
      },
    }),
  });
});
