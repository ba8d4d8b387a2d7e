import { join } from 'node:path';
import postgres from 'postgres';
import { startSshHost } from '../../servers/ssh-host.ts';
import { startStack } from '../../servers/stack.ts';
import { addHost, openSession } from '../session.ts';

const LAUNCHES = 100;
const ROUNDS = 5;
const MAX_COMMITS = 5;
const MAX_WAL_BYTES = 3_000;

interface Written {
  /** Transactions that wrote. */
  commits: number;
  walBytes: number;
}

/** What a `true` in a warm session costs the database, over HTTP, less what the service writes anyway. */
export async function measureWarmCommand(options: {
  directory: string;
  databaseUrl: string;
}): Promise<{ passed: boolean }> {
  const { directory, databaseUrl } = options;
  // Of its own: the service creates its administrator.
  const url = new URL(databaseUrl);
  url.pathname = '/warm';
  const admin = postgres(databaseUrl, { max: 1 });
  await admin`create database warm`;
  await admin.end();
  const host = await startSshHost({ directory: join(directory, 'host'), log: () => {} });
  const stack = await startStack({
    directory,
    environment: { PATH: process.env.PATH },
    settings: { LIMIT_REQUESTS: '0', DATABASE_URL: url.href },
  });
  const sql = postgres(url.href, { max: 1 });
  try {
    await addHost(stack.client, 'plain', host);
    const sid = await openSession(stack.client, 'plain', host);
    const launch = () => stack.client.post('/api/remotes/launch', { sid, command: 'true' });
    for (let n = 0; n < LAUNCHES / 2; n++) await launch();
    await sql`checkpoint`;
    // Pages are written whole after a checkpoint, once each.
    for (let n = 0; n < LAUNCHES / 2; n++) await launch();
    const rounds: Written[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const began = performance.now();
      const busy = await measure(sql, async () => {
        for (let n = 0; n < LAUNCHES / ROUNDS; n++) await launch();
      });
      const ms = performance.now() - began;
      const idle = await measure(sql, () => new Promise(resolve => setTimeout(resolve, ms)));
      rounds.push({
        commits: ((busy.commits - idle.commits) * ROUNDS) / LAUNCHES,
        walBytes: ((busy.walBytes - idle.walBytes) * ROUNDS) / LAUNCHES,
      });
    }
    // A vacuum that falls into one of them leaves no trace.
    const median = (key: keyof Written) =>
      rounds.map(round => round[key]).sort((x, y) => x - y)[(ROUNDS - 1) / 2] ?? 0;
    const commits = median('commits');
    const walBytes = Math.round(median('walBytes'));
    const passed = commits <= MAX_COMMITS && walBytes <= MAX_WAL_BYTES;
    console.log(
      `${passed ? 'ok  ' : 'MISS'} a warm true over HTTP: ${commits.toFixed(1)} commits that write (at most ${MAX_COMMITS}), ${walBytes} bytes of WAL (at most ${MAX_WAL_BYTES})`,
    );
    return { passed };
  } finally {
    await sql.end();
    await stack.stop();
    await host.stop();
  }
}

async function measure(sql: postgres.Sql, work: () => Promise<unknown>): Promise<Written> {
  const before = await read(sql);
  await work();
  const after = await read(sql);
  return {
    commits: after.commits - before.commits,
    walBytes: after.walBytes - before.walBytes,
  };
}

/** Only what writes has a transaction id. */
async function read(sql: postgres.Sql): Promise<Written> {
  const [row] = await sql<{ commits: string; wal: string }[]>`
    select pg_snapshot_xmax(pg_current_snapshot())::text as commits,
      pg_current_wal_insert_lsn() - '0/0' as wal`;
  return { commits: Number(row?.commits), walBytes: Number(row?.wal) };
}
