import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Config, readConfig } from '../../shared/config.ts';
import { createLog, type Logger } from '../../shared/log.ts';
import { packageRoot } from '../../shared/package-root.ts';
import type { ProcessLife } from '../../shared/process.ts';
import { chooseDataDir } from '../data-dir.ts';
import { readMadeSecrets } from '../made-secrets.ts';
import { startPostgres } from '../postgres.ts';
import { StartError } from '../start-error.ts';
import { supervise } from '../supervisor.ts';
import { prepareDatabase } from './migrate.ts';

/** Workers of the embedded form: one may die and the other goes on. */
const WORKERS = 2;

/**
 * `windlass up`: the embedded Postgres unless DATABASE_URL names another, the API and two workers that take every kind
 * of work; until it is asked to stop.
 */
export async function up({ stopping }: ProcessLife): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog({ level: config.LOG_LEVEL, name: 'windlass' });
  await requireFreePort(config);
  const { dataDir, notice } = chooseDataDir({
    given: config.DATA_DIR,
    checkout: fileURLToPath(packageRoot),
  });
  if (notice) process.stdout.write(`${notice}\n`);
  const postgres = config.DATABASE_URL
    ? undefined
    : await startPostgres({ dataDir, log, signal: stopping });
  try {
    const databaseUrl = config.DATABASE_URL ?? postgres?.url ?? '';
    const secrets = await readMadeSecrets(dataDir, config);
    await prepareDatabase(databaseUrl, config);
    await superviseAll({
      config,
      log,
      stopping,
      env: { DATA_DIR: dataDir, DATABASE_URL: databaseUrl, ...secrets },
    });
  } finally {
    await postgres?.stop();
  }
}

async function superviseAll(options: {
  config: Config;
  log: Logger;
  stopping: AbortSignal;
  env: Record<string, string>;
}): Promise<void> {
  const { config, log, stopping, env } = options;
  const program = (path: string) => [
    process.execPath,
    fileURLToPath(new URL(`../../${path}`, import.meta.url)),
  ];
  const inherited = process.env as Record<string, string>;
  const worker = (n: number) => ({
    name: `worker.${n}`,
    command: program('workers/main.js'),
    env: { ...inherited, ...env },
  });
  const { SEAL_PRIVATE_KEYS: _, ...apiEnv } = { ...inherited, ...env };
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

/** A port in use is told before anything is started, in one line. */
async function requireFreePort({ HOST, PORT }: Config): Promise<void> {
  const server = createServer();
  server.listen(PORT, HOST);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      throw new StartError(`Port ${PORT} on ${HOST} is in use.`, {
        hint: 'Set PORT to a free one.',
      });
    throw new StartError(`Windlass cannot listen on ${HOST}:${PORT} (${code}).`, {
      hint: 'Set HOST and PORT.',
    });
  }
  server.close();
  await once(server, 'close');
}
