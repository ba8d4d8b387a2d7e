import { setTimeout as delay } from 'node:timers/promises';
import {
  type Database,
  type DatabaseOptions,
  openDatabase,
  reasonOfOutage,
} from '../database/connect.ts';
import { Notifications } from '../database/notifications.ts';
import { waitForSchema } from '../database/wait-for-schema.ts';
import { waitForStore } from '../installation/wait-for-store.ts';
import { JobQueues } from '../jobs/queue.ts';
import { createLog, type Logger } from '../process/log.ts';
import { logWarnings } from '../process/log-warnings.ts';
import { receiveSecrets } from '../secrets/handed-secrets.ts';
import { listSecrets } from '../secrets/redact.ts';
import { type Config, ConfigError, readConfig, renewKeys } from '../settings/config.ts';
import { findMisspelt } from '../settings/misspelt.ts';
import { FreeSpace } from '../storage/free-space.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { openObjectStore } from '../storage/open.ts';
import {
  beginProcess,
  exitOnBadSettings,
  exitOnUncaughtError,
  type ProcessLifecycle,
} from './lifecycle.ts';
import { type Dependency, watchDependencies } from './watch-dependencies.ts';

/** What closing may take once nothing is in progress. */
const CLOSE_MS = 3_000;

/** A configuration in which these settings are set. */
type ConfigWith<S extends keyof Config> = Config & { [K in S]: NonNullable<Config[K]> };

/** What an API and a worker are both made of. */
export interface ServiceContext<S extends keyof Config = never> {
  config: ConfigWith<S>;
  log: Logger;
  database: Database;
  notifications: Notifications;
  objects: ObjectStore;
  freeSpace: FreeSpace;
  queues: JobQueues;
  /** Aborted when the process is asked to stop. */
  stopping: AbortSignal;
}

interface Service<S extends keyof Config> {
  life: ProcessLifecycle;
  /** All settings as texts, as they were when the process began. */
  environment: Record<string, string | undefined>;
  context: ServiceContext<S>;
  /** Closes what was opened, beside what else has to end, and ends the process. */
  close(...ending: Promise<unknown>[]): Promise<never>;
}

interface ServiceOptions<S extends keyof Config> {
  /** The name of the process, for ps and for the database. */
  title: string;
  /** Its name in the lines of its log. Default: the title. */
  logName?: string;
  /** The settings without which it does not start, besides DATABASE_URL. */
  requires: readonly S[];
  database: Omit<DatabaseOptions, 'directUrl'>;
}

/**
 * Begins a process of the API or a worker: reads the settings, opens what they name, and waits for a database with its
 * schema and for its store. Ends the process where the settings are wrong.
 */
export async function openService<S extends keyof Config>(
  options: ServiceOptions<S>,
): Promise<Service<S>> {
  const life = beginProcess(options.title);
  let isOpen = false;
  // Nothing has begun that would have to end first.
  void life.stopped.then(() => isOpen || process.exit(0));
  try {
    const service = await open(life, options);
    isOpen = true;
    return service;
  } catch (error) {
    exitOnBadSettings(error);
    throw error;
  }
}

async function open<S extends keyof Config>(
  life: ProcessLifecycle,
  { title, logName = title, requires, database: databaseOptions }: ServiceOptions<S>,
): Promise<Service<S>> {
  const { environment, onChange } = await receiveSecrets(process.env);
  const config = requireSettings(readConfig(environment), ['DATABASE_URL', ...requires], title);
  const log = createLog({ level: config.LOG_LEVEL, name: logName, secrets: listSecrets(config) });
  exitOnUncaughtError(log);
  logWarnings(log);
  // `windlass up` has told of them.
  if (!process.send) for (const line of findMisspelt(process.env)) log.warn(line);
  const { DATABASE_URL, DATABASE_DIRECT_URL: directUrl } = config;
  const database = openDatabase(DATABASE_URL, { ...databaseOptions, directUrl });
  const notifications = new Notifications(database, log);
  await waitForSchema(database, {
    url: DATABASE_URL,
    signal: life.stopping,
    onWait: reason => log.info(reason),
    onNewer: what => log.warn(what),
  });
  await notifications.listen();
  const objects = await openObjectStore(config);
  await waitForStore(database, objects, { log, signal: life.stopping });
  const freeSpace = new FreeSpace(objects, config.LIMIT_FREE_BYTES);
  const queues = new JobQueues({
    databaseUrl: directUrl ?? DATABASE_URL,
    redisUrl: config.REDIS_URL,
    log,
    direct: database.direct,
  });
  const dependencies: Dependency[] = [
    { name: 'the database', check: () => database.check(), explain: reasonOfOutage },
    { name: 'the object store', check: () => objects.check() },
  ];
  if (database.isPooled)
    dependencies.push({ name: 'the connection pooler', check: () => database.sql`select 1` });
  // Without Redis the queue is in the database.
  if (config.REDIS_URL) dependencies.push({ name: 'the queue', check: () => queues.check() });
  watchDependencies(dependencies, { log, stopping: life.stopping });
  onChange(secrets => renewKeys(config, { ...environment, ...secrets }));
  return {
    life,
    environment,
    context: {
      config,
      log,
      database,
      notifications,
      objects,
      freeSpace,
      queues,
      stopping: life.stopping,
    },
    async close(...ending) {
      const ended = Promise.allSettled([...ending, notifications.close(), queues.close()]);
      await Promise.race([ended.then(() => database.close()), delay(CLOSE_MS)]);
      process.exit(0);
    },
  };
}

/** Throws a ConfigError that names the settings that are not set. */
function requireSettings<S extends keyof Config>(
  config: Config,
  names: readonly S[],
  title: string,
): ConfigWith<S> {
  const missing = names.filter(name => !config[name]);
  if (missing.length === 0) return config as ConfigWith<S>;
  throw new ConfigError(
    missing.map(name => `${name} is not set: ${title} needs it; \`npm start\` sets it by itself`),
  );
}
