import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Config, readConfig } from '../../shared/config.ts';
import { createLog, type Logger } from '../../shared/log.ts';
import { packageRoot } from '../../shared/package-root.ts';
import { chooseDataDir } from '../data-dir.ts';
import { lockDataDir } from '../data-lock.ts';
import { readMadeSecrets } from '../made-secrets.ts';
import { startPostgres } from '../postgres/postgres.ts';
import { errnoOf, StartError } from '../start-error.ts';
import { supervise } from '../supervisor/supervisor.ts';
import type { CommandCall } from './call.ts';
import { prepareDatabase } from './migrate.ts';

/** Workers of the embedded form: one may die and the other goes on. */
const WORKERS = 2;

/**
 * `windlass up`: the embedded Postgres unless DATABASE_URL names another, the API and two workers that take every kind
 * of work; until it is asked to stop.
 */
export async function up({ life: { stopping }, environment }: CommandCall): Promise<void> {
  const config = readConfig(environment);
  const log = createLog({ level: config.LOG_LEVEL, name: 'windlass' });
  await requireFreePort(config);
  const { dataDir, notice } = chooseDataDir({
    given: config.DATA_DIR,
    checkout: fileURLToPath(packageRoot),
  });
  if (notice) process.stdout.write(`${notice}\n`);
  // The embedded Postgres locks the directory itself.
  const lock = config.DATABASE_URL ? await lockDataDir({ dataDir, signal: stopping }) : undefined;
  const postgres = lock ? undefined : await startPostgres({ dataDir, log, signal: stopping });
  try {
    const databaseUrl = config.DATABASE_URL ?? postgres?.url ?? '';
    const secrets = await readMadeSecrets(dataDir, config);
    await prepareDatabase(databaseUrl, config);
    await superviseAll({
      config,
      log,
      stopping,
      env: { ...environment, DATA_DIR: dataDir, DATABASE_URL: databaseUrl, ...secrets },
    });
  } finally {
    await lock?.release();
    await postgres?.stop();
  }
}

async function superviseAll(options: {
  config: Config;
  log: Logger;
  stopping: AbortSignal;
  env: Record<string, string | undefined>;
}): Promise<void> {
  const { config, log, stopping, env } = options;
  const program = (path: string) => [
    process.execPath,
    fileURLToPath(new URL(`../../${path}`, import.meta.url)),
  ];
  const worker = (n: number) => ({
    name: `worker.${n}`,
    command: program('workers/main.js'),
    env: env,
  });
  const { SEAL_PRIVATE_KEYS: _, ...apiEnv } = env;
  const supervisor = supervise({
    groups: [
      [{ name: 'api', command: program('api/main.js'), env: apiEnv }],
      Array.from({ length: WORKERS }, (_unused, n) => worker(n + 1)),
    ],
    log,
    signal: stopping,
  });
  supervisor.ready
    .then(() =>
      process.stdout.write(
        `Windlass is ready at ${config.PUBLIC_URL ?? `http://${config.HOST}:${config.PORT}`}\n`,
      ),
    )
    .catch(() => {});
  await supervisor.stopped;
}

/** What a supervisor that was killed left behind needs so long to end, and to give the port free. */
const PORT_WAIT_MS = 5_000;

/** A port in use is told before anything is started, in one line. */
async function requireFreePort({ HOST, PORT }: Config): Promise<void> {
  const until = performance.now() + PORT_WAIT_MS;
  for (;;) {
    const code = await tryPort(HOST, PORT);
    if (code === undefined) return;
    if (code !== 'EADDRINUSE') {
      throw new StartError(`Windlass cannot listen on ${HOST}:${PORT} (${code}).`, {
        hint: 'Set HOST and PORT.',
      });
    }
    if (performance.now() > until) {
      throw new StartError(`Port ${PORT} on ${HOST} is in use.`, {
        hint: 'Set PORT to a free one.',
      });
    }
    await delay(100);
  }
}

/** The code of the error that listening there gives, if any. */
async function tryPort(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    return errnoOf(error) ?? 'unknown';
  }
  server.close();
  await once(server, 'close');
  return undefined;
}
