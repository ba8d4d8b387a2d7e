import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, readConfig } from '../../shared/config.ts';
import { createLog, type Logger } from '../../shared/log.ts';
import { packageRoot } from '../../shared/package-root.ts';
import { listSecrets } from '../../shared/redact.ts';
import { chooseDataDir } from '../data-dir.ts';
import { lockDataDir } from '../data-dir-lock.ts';
import { startPostgres } from '../embedded-postgres/postgres.ts';
import { loadOrGenerateSecrets } from '../generated-secrets.ts';
import {
  listApiPorts,
  listEmbeddedProcesses,
  listFleetProcesses,
  readFleetProcesses,
} from '../supervisor/process-specs.ts';
import type { ProcessSpec } from '../supervisor/supervised-process.ts';
import { supervise } from '../supervisor/supervisor.ts';
import { checkServers } from './check-servers.ts';
import type { CommandContext } from './command-context.ts';
import { requireFreePorts } from './free-ports.ts';
import { prepareDatabase } from './migrate.ts';

/**
 * `windlass up`: runs everything until it is asked to stop. If DATABASE_URL, REDIS_URL and S3_ENDPOINT are all set, it runs
 * the fleet form: two processes for each line of a Procfile. Otherwise it runs the embedded form: an API and two workers of
 * every kind, with the embedded Postgres unless DATABASE_URL is set.
 */
export async function up(context: CommandContext): Promise<void> {
  const config = readConfig(context.environment);
  const { DATABASE_URL, REDIS_URL, S3_ENDPOINT } = config;
  if (DATABASE_URL && REDIS_URL && S3_ENDPOINT) await upFleet(context, config);
  else await upEmbedded(context, config);
}

async function upEmbedded({ life, environment }: CommandContext, config: Config): Promise<void> {
  const { stopping } = life;
  await requireFreePorts(config.HOST, [config.PORT]);
  const dataDir = findDataDir(config);
  const log = openLog(config);
  // The embedded Postgres locks the directory itself.
  const lock = config.DATABASE_URL ? await lockDataDir({ dataDir, signal: stopping }) : undefined;
  const postgres = lock ? undefined : await startPostgres({ dataDir, log, signal: stopping });
  try {
    const databaseUrl = config.DATABASE_URL ?? postgres?.url ?? '';
    const secrets = await loadOrGenerateSecrets(dataDir, config);
    await checkServers(config);
    await prepareDatabase(databaseUrl, config, stopping);
    const env = { ...environment, DATA_DIR: dataDir, DATABASE_URL: databaseUrl, ...secrets };
    await superviseAll(config, stopping, listEmbeddedProcesses(env));
  } finally {
    await lock?.release();
    await postgres?.stop();
  }
}

/** All data are on other servers. The data directory only stores generated keys, if no keys are set. */
async function upFleet({ life, environment }: CommandContext, config: Config): Promise<void> {
  const { stopping } = life;
  const fleet = readFleetProcesses(config.PROCFILE);
  await requireFreePorts(config.HOST, listApiPorts(fleet, config.PORT));
  const { SECRET_KEY, SEAL_PUBLIC_KEY, SEAL_PRIVATE_KEYS } = config;
  const hasKeys = SECRET_KEY && SEAL_PUBLIC_KEY && SEAL_PRIVATE_KEYS;
  const keys = hasKeys ? {} : await loadKeys(config, stopping);
  // The working directory of the processes is the package's folder.
  const dataDir = config.DATA_DIR ? { DATA_DIR: resolve(config.DATA_DIR) } : {};
  await checkServers(config);
  await prepareDatabase(config.DATABASE_URL ?? '', config, stopping);
  const env = { ...environment, ...dataDir, ...keys };
  await superviseAll(config, stopping, listFleetProcesses(fleet, env, config.PORT));
}

/** Loads or generates the keys, under a lock: concurrent starts must not generate different ones. */
async function loadKeys(config: Config, signal: AbortSignal): Promise<Record<string, string>> {
  const dataDir = findDataDir(config);
  const lock = await lockDataDir({ dataDir, signal });
  try {
    const keys = await loadOrGenerateSecrets(dataDir, config);
    process.stdout.write(
      `Keys are kept in ${dataDir}/secrets.json: another machine of this fleet needs the same ones.\n`,
    );
    return keys;
  } finally {
    await lock.release();
  }
}

function findDataDir(config: Config): string {
  const { dataDir, notice } = chooseDataDir({
    given: config.DATA_DIR,
    checkout: fileURLToPath(packageRoot),
  });
  if (notice) process.stdout.write(`${notice}\n`);
  return dataDir;
}

function openLog(config: Config): Logger {
  const { LOG_LEVEL: level } = config;
  return createLog({ level, name: 'windlass', secrets: listSecrets(config) });
}

async function superviseAll(
  config: Config,
  signal: AbortSignal,
  groups: ProcessSpec[][],
): Promise<void> {
  // For `npm run dev`, which restarts single processes.
  const onReady = (name: string, pid: number | undefined) => process.send?.({ process: name, pid });
  const supervisor = supervise({ groups, log: openLog(config), signal, onReady });
  const [listening = []] = groups;
  const address = config.PUBLIC_URL ?? `http://${config.HOST}:${config.PORT}`;
  const where = listening.length > 0 ? ` at ${address}` : '.';
  supervisor.ready.then(() => process.stdout.write(`Windlass is ready${where}\n`)).catch(() => {});
  await supervisor.stopped;
}
