import { asc, eq, type SQL, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Db } from '../../shared/database/connect.ts';
import { jobs, workers } from '../../shared/database/schema.ts';
import { notFound } from '../../shared/errors/errors.ts';
import { JOB_KINDS, JOBS } from '../../shared/jobs/catalog.ts';
import { hasSlot } from '../../shared/jobs/job-conditions.ts';
import { IS_ALIVE } from '../../shared/jobs/lease.ts';
import { checkIfNoneMatch, refuseIfMatchTag } from '../http/conditional-requests.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockAdministrator } from '../identity/lock-user.ts';
import { operation } from '../openapi/operation.ts';

const workerRecord = z
  .object({
    id: z.string(),
    host: z.string(),
    kinds: z
      .array(z.string())
      .describe('Of the jobs that it does; `upkeep`: gives jobs to all workers.'),
    slots: z
      .record(z.string(), z.number().int())
      .describe('Jobs of each queue that it runs at once.'),
    running: z.number().int().describe('Jobs that it runs.'),
    started: z.date(),
    seen: z.date(),
    version: z.string().nullable(),
    draining: z.boolean().describe('It takes no more jobs.'),
  })
  .meta({ id: 'Worker' });
const drain = z.strictObject({ draining: z.boolean() }).meta({ id: 'WorkerChanges' });

const isAlive = sql.raw(IS_ALIVE);

/** The workers alive, for server administrators. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/workers', {
    get: operation({
      id: 'listWorkers',
      topic: 'operations',
      summary: 'List the workers that are alive',
      for: 'administrators',
      answers: {
        200: {
          means: 'All of them.',
          json: z.object({ items: z.array(workerRecord) }).meta({ id: 'WorkerList' }),
        },
      },
      handle: async ({ res }) => {
        res.json({ items: await readWorkers(db, isAlive) });
      },
    }),
  });

  resource(router, '/workers/:id', {
    put: operation({
      id: 'changeWorker',
      topic: 'operations',
      summary: 'Have a worker take no more jobs, or take them again',
      details: 'It finishes what it has. A worker that starts again is a new one.',
      for: 'administrators',
      refusesTokens: true,
      headers: ['If-Match', 'If-None-Match'],
      body: drain,
      answers: { 200: { means: 'The worker.', json: workerRecord } },
      errors: ['not_found'],
      handle: async ({ req, res, body }) => {
        const id = pathParameter(req, 'id');
        const { draining } = body();
        const [worker] = await db.transaction(async tx => {
          await lockAdministrator(tx, currentUser(res));
          const which = sql`${workers.id} = ${id} and ${isAlive}`;
          await tx.update(workers).set({ draining }).where(which);
          const found = await readWorkers(tx, which);
          if (found.length > 0) {
            refuseIfMatchTag(req);
            checkIfNoneMatch(req);
          }
          const target = `${id} ${draining ? 'drain' : 'resume'}`;
          if (found.length > 0) await auditOf({ req, res })(tx, 'worker', target);
          return found;
        });
        if (!worker) throw notFound('there is no such worker.', 'GET /api/workers lists them.');
        api.notifications.publish('worker', id);
        res.json(worker);
      },
    }),
  });
});

async function readWorkers(db: Db, which: SQL): Promise<z.output<typeof workerRecord>[]> {
  // There are never more of these jobs than slots.
  const held = db
    .select({ worker: jobs.worker, jobs: sql<number>`count(*)::int`.as('jobs') })
    .from(jobs)
    .where(sql`${hasSlot} and ${jobs.leaseToken} is not null`)
    .groupBy(jobs.worker)
    .as('held');
  const { id, host, slots, upkeep, started, seen, release: version, draining } = workers;
  const running = sql<number>`coalesce(${held.jobs}, 0)`;
  const rows = await db
    .select({ id, host, slots, upkeep, started, seen, version, draining, running })
    .from(workers)
    .leftJoin(held, eq(held.worker, workers.id))
    .where(which)
    .orderBy(asc(workers.id));
  return rows.map(({ upkeep: doesUpkeep, ...row }) => ({
    ...row,
    kinds: [
      ...JOB_KINDS.filter(kind => (row.slots[JOBS[kind].queue] ?? 0) > 0),
      ...(doesUpkeep ? ['upkeep'] : []),
    ],
  }));
}
