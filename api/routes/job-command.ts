import { eq } from 'drizzle-orm';
import { z } from 'zod';
import { jobs } from '../../shared/database/schema.ts';
import { notFound } from '../../shared/errors/errors.ts';
import type { Payload } from '../../shared/jobs/catalog.ts';
import { batchPayload } from '../../shared/jobs/payloads/batch.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser } from '../identity/current-user.ts';
import { findOwnJob, unknownJob } from '../jobs/queries/find-job.ts';
import { operation } from '../openapi/operation.ts';

/** What a batch job asks its batch system for, by the names of the request. */
const resources = batchPayload.pick({
  nodes: true,
  tasks: true,
  cpus: true,
  memory: true,
  time: true,
  queue: true,
  account: true,
});

const jobCommand = z
  .object({
    command: z.string().nullable(),
    script: z.string().nullable().describe('Of a batch job that is a file of its own.'),
    cwd: z.string().nullable(),
    env: z.array(z.string()).describe('Names of its variables. Their values may be secrets.'),
    stdin: z.number().int().describe('Bytes of its standard input.'),
    timeout: z.number().nullable().describe('Seconds.'),
    batch: resources
      .extend({ options: z.array(z.string()).optional() })
      .meta({ id: 'BatchResources' })
      .nullable()
      .describe('What a batch job asked for.'),
  })
  .meta({ id: 'JobCommand' });

/** All of what a job was to run: its record has the first line alone. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/jobs/:id/command', {
    get: operation({
      id: 'fetchJobCommand',
      topic: 'jobs',
      summary: 'See all of the command that a job runs, and how',
      details: 'Of commands and batch jobs.',
      answers: { 200: { means: 'What was asked for.', json: jobCommand } },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const { id, kind } = await findOwnJob(db, pathParameter(req, 'id'), currentUser(res));
        if (kind !== 'command' && kind !== 'batch')
          throw notFound(
            `a job of kind ${kind} runs no command.`,
            `GET /api/jobs/${id} tells what it is.`,
          );
        const [row] = await db.select({ payload: jobs.payload }).from(jobs).where(eq(jobs.id, id));
        if (!row) throw unknownJob();
        const asked = row.payload as Payload<'command'> & Payload<'batch'>;
        res.json({
          command: asked.command ?? null,
          script: asked.script ?? null,
          cwd: asked.cwd ?? null,
          env: Object.keys(asked.env ?? {}),
          stdin: Buffer.byteLength(asked.stdin ?? ''),
          timeout: asked.timeout ?? null,
          batch: kind === 'batch' ? resourcesOf(asked) : null,
        });
      },
    }),
  });
});

const resourcesOf = ({
  nodes,
  tasks,
  cpus,
  memory,
  time,
  queue,
  account,
  options,
}: Payload<'batch'>) => ({ nodes, tasks, cpus, memory, time, queue, account, options });
