import { z } from 'zod';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { ReadinessCheck } from '../monitoring/readiness.ts';
import { SERVICE_INDEX } from '../monitoring/service-index.ts';
import { operation } from '../openapi/operation.ts';

const problem = z.string().nullable();
const readinessRecord = z
  .object({
    ready: z.boolean(),
    checks: z
      .object({ database: problem, objects: problem, queue: problem, work: problem })
      .meta({ id: 'ReadinessChecks' }),
    degraded: z.array(z.string()).describe('What works in part.'),
    workers: z.number().int().nullable().describe('Alive; null when the database does not say.'),
  })
  .meta({ id: 'Readiness' });

/** The service's index, liveness and readiness. */
export default routes('public', (router, api) => {
  const readiness = new ReadinessCheck(api);

  resource(router, '/', {
    get: operation({
      id: 'getServiceIndex',
      topic: 'operations',
      summary: 'What this is, and where to begin',
      for: 'everyone',
      answers: {
        200: {
          means: 'The index.',
          json: z
            .looseObject({
              name: z.string(),
              is: z.string(),
              logins: z
                .array(z.enum(['password', 'oidc']))
                .describe('How users log in: `oidc` is GET /api/login/oidc.'),
            })
            .meta({ id: 'ServiceIndex' }),
        },
        302: { means: 'For browsers.', headers: { Location: 'The console.' } },
      },
      handle: ({ req, res }) => {
        res.vary('Accept');
        if (req.accepts(['json', 'html']) === 'html') return void res.redirect('/console/');
        res.json({ ...SERVICE_INDEX, logins: api.oidc ? ['password', 'oidc'] : ['password'] });
      },
    }),
  });

  resource(router, '/healthz', {
    get: operation({
      id: 'checkHealth',
      topic: 'operations',
      summary: 'Whether this process answers',
      details: 'Nothing else is asked.',
      for: 'everyone',
      answers: {
        200: { means: 'It does.', json: z.object({ ok: z.literal(true) }).meta({ id: 'Health' }) },
      },
      handle: ({ res }) => void res.json({ ok: true }),
    }),
  });

  resource(router, '/readyz', {
    get: operation({
      id: 'checkReadiness',
      topic: 'operations',
      summary: 'Whether the service can serve, and what is unreachable',
      details:
        'Ready: what requests need answers. `degraded` names what works in part, such as work that no worker does.',
      for: 'everyone',
      answers: {
        200: { means: 'Ready.', json: readinessRecord },
        503: { means: 'Not ready.', json: readinessRecord, headers: { 'Retry-After': 'Seconds.' } },
      },
      handle: async ({ res }) => {
        const answer = await readiness.run();
        res.set('Cache-Control', 'no-store');
        if (!answer.ready) res.set('Retry-After', '2').status(503);
        // What is unreachable is logged where that changes: see watchDependencies().
        res.locals.logged = true;
        res.json(answer);
      },
    }),
  });
});
