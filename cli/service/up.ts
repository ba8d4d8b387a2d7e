import { join, resolve } from 'node:path';
import { isDatabaseDown, sqlState } from '../../shared/database/connect.ts';
import { createLog, type Logger } from '../../shared/process/log.ts';
import { listSecrets } from '../../shared/secrets/redact.ts';
import { type Config, readConfig } from '../../shared/settings/config.ts';
import { CommandError, errnoOf } from '../command-error.ts';
import { openDataDir } from '../data-dir/find-data-dir.ts';
import { lockDataDir } from '../data-dir/lock.ts';
import { startPostgres } from '../embedded-postgres/postgres.ts';
import { prepareRoles } from '../embedded-postgres/roles.ts';
import { loadOrGenerateSecrets, type StoredSecrets, watchSecrets } from '../generated-secrets.ts';
import { printLine } from '../output/print-line.ts';
import {
  listApiPorts,
  listEmbeddedProcesses,
  listFleetProcesses,
  readFleetProcesses,
} from '../supervisor/process-specs.ts';
import type { ProcessSpec } from '../supervisor/supervised-process.ts';
import { supervise } from '../supervisor/supervisor.ts';
import { checkServers } from './check-servers.ts';
import { requireOwnStore } from './check-store.ts';
import type { CommandContext } from './command-context.ts';
import { addressOf, requireFreePorts } from './free-ports.ts';
import { prepareDatabase } from './migrate.ts';
import { prepareServiceUsers, requireServiceUsers } from './service-users.ts';

/**
 * `windlass up`: runs everything until it is asked to stop, in the fleet form if DATABASE_URL, REDIS_URL and
 * S3_ENDPOINT are all set, else in the embedded form.
 */
export async function up(context: CommandContext): Promise<void> {
  const config = readConfig(context.environment);
  for (const line of context.misspelt) openLog(config).warn(line);
  const { DATABASE_URL, REDIS_URL, S3_ENDPOINT } = config;
  const isFleet = DATABASE_URL && REDIS_URL && S3_ENDPOINT;
  const ended = isFleet
    ? upFleet(context, { ...config, DATABASE_URL })
    : upEmbedded(context, config);
  await ended.catch((error: unknown) => {
    // A stop during the start is no error.
    if (context.life.stopping.aborted) process.exit(0);
    throw error;
  });
}

async function upEmbedded({ life, environment }: CommandContext, config: Config): Promise<void> {
  const { stopping } = life;
  requireServiceUsers(config);
  await requireFreePorts(config.HOST, [config.PORT]);
  const dataDir = openDataDir(config, printLine);
  const log = openLog(config);
  // The embedded Postgres locks the directory itself.
  const lock = config.DATABASE_URL ? await lockDataDir({ dataDir, signal: stopping }) : undefined;
  const postgres = lock ? undefined : await startPostgres({ dataDir, log, signal: stopping });
  try {
    const roles = postgres && (await prepareRoles(postgres.url));
    const databaseUrl = config.DATABASE_URL ?? roles?.owner ?? '';
    const secrets = await loadOrGenerateSecrets(dataDir, config);
    await checkServers(config);
    await prepareDatabase(databaseUrl, config, stopping);
    await requireOwnStore(databaseUrl, { ...config, DATA_DIR: dataDir });
    const env = { ...environment, DATA_DIR: dataDir, DATABASE_URL: databaseUrl };
    const users = await prepareServiceUsers(config, dataDir, printLine);
    const processesWith = (keys: object) =>
      listEmbeddedProcesses(
        { ...env, ...keys },
        { workers: config.WORKER_PROCESSES, urls: roles, users },
      );
    await superviseAll(config, stopping, {
      groups: processesWith(secrets),
      renewed: { dataDir, processesWith },
    });
  } catch (error) {
    // A server that refuses a login has not ended.
    const isRefused = /^28|^3D000$/.test(sqlState(error) ?? '');
    const isGone = isDatabaseDown(error) || errnoOf(error) === 'ECONNREFUSED';
    throw postgres && isGone && !isRefused ? endedEarly(dataDir, error) : error;
  } finally {
    await lock?.release();
    await postgres?.stop();
  }
}

const endedEarly = (dataDir: string, cause: unknown) =>
  new CommandError('The embedded Postgres ended while the service began.', {
    hint: `${join(dataDir, 'postgres.log')} may say why; the machine may lack memory. Start again.`,
    cause,
  });

/** All data are on other servers. The data directory only stores generated keys, if no keys are set. */
async function upFleet(
  { life, environment }: CommandContext,
  config: Config & { DATABASE_URL: string },
): Promise<void> {
  const { stopping } = life;
  const fleet = readFleetProcesses(config.PROCFILE);
  await requireFreePorts(config.HOST, listApiPorts(fleet, config.PORT));
  const { SECRET_KEY, SEAL_PUBLIC_KEY, SEAL_PRIVATE_KEYS } = config;
  const hasKeys = SECRET_KEY && SEAL_PUBLIC_KEY && SEAL_PRIVATE_KEYS;
  const dataDirOfKeys = hasKeys ? undefined : openDataDir(config, printLine);
  const keys = dataDirOfKeys ? await loadKeys(dataDirOfKeys, config, stopping) : {};
  // The working directory of the processes is the package's folder.
  const dataDir = config.DATA_DIR ? { DATA_DIR: resolve(config.DATA_DIR) } : {};
  await checkServers(config);
  await prepareDatabase(config.DATABASE_URL, config, stopping);
  await requireOwnStore(config.DATABASE_URL, config);
  const env = { ...environment, ...dataDir };
  const processesWith = (renewed: object) =>
    listFleetProcesses(fleet, { ...env, ...renewed }, config.PORT);
  await superviseAll(config, stopping, {
    groups: processesWith(keys),
    renewed: dataDirOfKeys ? { dataDir: dataDirOfKeys, processesWith } : undefined,
  });
}

/** Loads or generates the keys, under a lock: concurrent starts must not generate different ones. */
async function loadKeys(
  dataDir: string,
  config: Config,
  signal: AbortSignal,
): Promise<StoredSecrets> {
  const lock = await lockDataDir({ dataDir, signal });
  try {
    const keys = await loadOrGenerateSecrets(dataDir, config);
    printLine(
      `Keys are kept in ${dataDir}/secrets.json: another machine of this fleet needs the same ones.`,
    );
    return keys;
  } finally {
    await lock.release();
  }
}

function openLog(config: Config): Logger {
  const { LOG_LEVEL: level } = config;
  return createLog({ level, name: 'windlass', secrets: listSecrets(config) });
}

interface Supervised {
  groups: ProcessSpec[][];
  /** Where their keys are kept, and how processes get later keys. */
  renewed?: { dataDir: string; processesWith(keys: StoredSecrets): ProcessSpec[][] };
}

async function superviseAll(
  config: Config,
  signal: AbortSignal,
  { groups, renewed }: Supervised,
): Promise<void> {
  // For `npm run dev`, which restarts single processes.
  const onReady = (name: string, pid: number | undefined) => process.send?.({ process: name, pid });
  const supervisor = supervise({ groups, log: openLog(config), signal, onReady });
  const unwatch =
    renewed &&
    watchSecrets(renewed.dataDir, config, keys => {
      const specs = renewed.processesWith(keys).flat();
      supervisor.handOver(Object.fromEntries(specs.map(({ name, secrets }) => [name, secrets])));
    });
  const [listening = []] = groups;
  const address = config.PUBLIC_URL ?? addressOf(config.HOST, config.PORT);
  const where = listening.length > 0 ? ` at ${address}` : '.';
  supervisor.ready.then(() => printLine(`Windlass is ready${where}`)).catch(() => {});
  await supervisor.stopped;
  unwatch?.();
}
