import PgBoss from 'pg-boss';
import postgres from 'postgres';
import { type Contender, PAYLOAD, type Servers } from './contender.ts';

const QUEUE = 'noop';
/** As its documentation has it for throughput: large batches, and the shortest pause between two. */
const WORK = { batchSize: 500, pollingIntervalSeconds: 0.5 };
const CONNECTIONS = 20;

async function start({ databaseUrl }: Servers): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    max: CONNECTIONS,
    supervise: false,
    schedule: false,
  });
  boss.on('error', error => console.error(error));
  await boss.start();
  return boss;
}

export async function openPgBoss(servers: Servers): Promise<Contender> {
  const boss = await start(servers);
  await boss.createQueue(QUEUE);
  const sql = postgres(servers.databaseUrl, { max: 1 });
  return {
    accept: () => boss.send(QUEUE, PAYLOAD),
    isDrained: async () => {
      const [row] = await sql`
        select not exists(select from pgboss.job where name = ${QUEUE} and state < 'completed') as drained`;
      return row?.drained;
    },
    close: () => Promise.all([boss.stop({ graceful: false, wait: true }), sql.end()]),
  };
}

export async function workForPgBoss(servers: Servers): Promise<void> {
  const boss = await start(servers);
  await boss.work(QUEUE, WORK, async () => {});
}
