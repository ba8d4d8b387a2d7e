import { z } from 'zod';
import type { ProjectRow, Role } from '../../shared/database/schema.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendJsonPieces } from '../http/send-json-pieces.ts';
import { currentUser } from '../identity/current-user.ts';
import { identifyAfterWait } from '../identity/identify-sender.ts';
import { operation } from '../openapi/operation.ts';
import { measureOwnProjects, readOwnProjects } from '../projects/own-projects.ts';

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
      handle: async ({ req, res }) => {
        const { username } = currentUser(res);
        // They are held twice, as rows and as JSON.
        await api.requestMemory.reserveIfLarge(res, 2 * (await measureOwnProjects(db, username)));
        async function* read() {
          for await (const page of readOwnProjects(db, username)) {
            // A slow reader may have lost the right to the next page.
            await identifyAfterWait(api, { req, res });
            yield* page;
          }
        }
        await sendJsonPieces(res, writeProjects(read()));
      },
    }),
  });
});

async function* writeProjects(
  all: AsyncIterable<{ project: ProjectRow; role: Role }>,
): AsyncGenerator<string> {
  let before = '{"projects":[';
  for await (const { project, role } of all) {
    const { pid: _id, name, description, created, updated } = project;
    const listed = { _id, name, description, role, created, updated };
    yield before + JSON.stringify(listed satisfies z.output<typeof listedProject>);
    before = ',';
  }
  yield before === ',' ? ']}' : `${before}]}`;
}
