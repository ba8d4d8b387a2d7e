import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import postgres from 'postgres';
import { type Contender, PAYLOAD, type Servers } from './contender.ts';

const TASK = 'noop';
/** The settings with which its documentation measures its throughput. */
const WORKER = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const CONNECTIONS = 20;
const logger = new Logger(() => () => {});

export async function openGraphileWorker({ databaseUrl }: Servers): Promise<Contender> {
  const preset = {
    worker: { connectionString: databaseUrl, maxPoolSize: CONNECTIONS, logger },
  };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  const sql = postgres(databaseUrl, { max: 1 });
  return {
    accept: () => utils.addJob(TASK, PAYLOAD),
    isDrained: async () => {
      const [row] =
        await sql`select not exists(select from graphile_worker._private_jobs) as drained`;
      return row?.drained;
    },
    close: () => Promise.all([utils.release(), sql.end()]),
  };
}

export async function workForGraphileWorker({ databaseUrl }: Servers): Promise<void> {
  const preset = { worker: { ...WORKER, connectionString: databaseUrl, logger } };
  await run({ preset, noHandleSignals: true, taskList: { [TASK]: async () => {} } });
}
