/** A worker process of one side: `worker.js NAME SERVERS WORK`, the last two as JSON. Tells its parent when it is ready. */
import { workForBareBullmq } from './bare-bullmq.ts';
import type { Servers } from './contender.ts';
import { workForGraphileWorker } from './graphile-worker.ts';
import { workForPgBoss } from './pg-boss.ts';
import { type Work, workForWindlass } from './windlass.ts';

const WORK = {
  windlass: ({ databaseUrl }: Servers, work: Work) => workForWindlass({ databaseUrl }, work),
  fleet: workForWindlass,
  'pg-boss': workForPgBoss,
  'graphile-worker': workForGraphileWorker,
  bullmq: workForBareBullmq,
};
export type WorkerName = keyof typeof WORK;

const [name = '', servers = '', work = ''] = process.argv.slice(2);
await WORK[name as WorkerName](JSON.parse(servers) as Servers, JSON.parse(work) as Work);
process.send?.('ready');
process.on('disconnect', () => process.exit(0));
