import { z } from 'zod';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser } from '../identity/current-user.ts';
import { findJobForOperation } from '../jobs/queries/find-job.ts';
import { historyEvent, readJobHistory } from '../jobs/queries/job-history.ts';
import { operation } from '../openapi/operation.ts';

/** What happened to a job. Server administrators see that of others' jobs too: it tells nothing of their work. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/jobs/:id/history', {
    get: operation({
      id: 'fetchJobHistory',
      topic: 'jobs',
      summary: 'See what happened to a job, and on which workers',
      answers: {
        200: {
          means: 'Its events, the oldest first.',
          json: z.object({ items: z.array(historyEvent) }).meta({ id: 'JobHistory' }),
        },
      },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const row = await findJobForOperation(db, pathParameter(req, 'id'), currentUser(res));
        res.json({ items: await readJobHistory(db, row.id) });
      },
    }),
  });
});
