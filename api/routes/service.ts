import { z } from 'zod';
import { contentPolicy } from '../http/content-policy.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { ReadinessCheck } from '../monitoring/readiness.ts';
import { renderServiceIndex, SERVICE_INDEX } from '../monitoring/service-index.ts';
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
export default routes('public', (router, api, describeAll) => {
  const readiness = new ReadinessCheck(api);

  resource(router, '/', {
    get: operation({
      id: 'getServiceIndex',
      topic: 'operations',
      summary: 'What this is, and where to begin',
      for: 'everyone',
      answers: {
        200: {
          means: 'As JSON, or as a page for browsers.',
          json: z.looseObject({ name: z.string(), is: z.string() }).meta({ id: 'ServiceIndex' }),
          types: ['text/html'],
        },
      },
      handle: ({ req, res }) => {
        res.vary('Accept');
        if (req.accepts(['json', 'html']) !== 'html') return void res.json(SERVICE_INDEX);
        res
          .type('html')
          .set(
            'Content-Security-Policy',
            contentPolicy("default-src 'none'", "style-src 'unsafe-inline'"),
          )
          .send(renderServiceIndex(describeAll()));
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
      summary: 'Whether the service can serve, and what is away',
      details: 'What requests need answers, and the work that they started is being done.',
      for: 'everyone',
      answers: {
        200: { means: 'Ready.', json: readinessRecord },
        503: { means: 'Not ready.', json: readinessRecord, headers: { 'Retry-After': 'Seconds.' } },
      },
      handle: async ({ res }) => {
        const answer = await readiness.run();
        res.set('Cache-Control', 'no-store');
        if (!answer.ready) res.set('Retry-After', '2').status(503);
        res.json(answer);
      },
    }),
  });
});
