import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { openDatabase } from '../shared/database/connect.ts';
import { Notifications } from '../shared/database/notifications.ts';
import { waitForSchema } from '../shared/database/wait-for-schema.ts';
import { waitForStore } from '../shared/installation/wait-for-store.ts';
import { JobQueues } from '../shared/jobs/queue.ts';
import {
  beginProcess,
  exitOnBadSettings,
  exitOnUncaughtError,
  exitWith,
} from '../shared/process/lifecycle.ts';
import { createLog } from '../shared/process/log.ts';
import { receiveSecrets } from '../shared/secrets/handed-secrets.ts';
import { listSecrets } from '../shared/secrets/redact.ts';
import { readConfig, renewKeys } from '../shared/settings/config.ts';
import { listSettings } from '../shared/settings/list-settings.ts';
import { FreeSpace } from '../shared/storage/free-space.ts';
import { openObjectStore } from '../shared/storage/open.ts';
import { createApp } from './app.ts';
import { RequestRates } from './concurrency/request-rates.ts';
import { ResponseQuota } from './concurrency/response-quota.ts';
import type { ApiContext } from './context.ts';
import { answerClientErrors } from './http/client-errors.ts';
import { handleExpectContinue } from './http/expect-continue.ts';
import { createMessageClasses } from './http/message-classes.ts';
import { RequestMemory } from './http/request-memory.ts';
import { SendBuffers } from './http/send-buffers.ts';
import { CredentialCache } from './identity/credential-cache.ts';
import { CredentialRates } from './identity/credential-rates.ts';
import { identifyAfterWait } from './identity/identify-sender.ts';
import { openOidc } from './identity/oidc/oidc.ts';
import { OwnPasswordChanges } from './identity/own-password-changes.ts';
import { PasswordVerifier } from './identity/password-verifier.ts';
import { OpenJobCounts } from './jobs/requests/open-job-counts.ts';
import { JobWatch } from './jobs/streaming/job-watch.ts';
import { loadRoutes } from './load-routes.ts';
import { refuseFloods } from './middleware/refuse-floods.ts';
import { ApiMetrics } from './monitoring/api-metrics.ts';
import { RawJsonBodies } from './raw-json/raw-json-bodies.ts';
import { ColumnCache } from './tables/column-cache.ts';
import { TableReader } from './tables/table-reader.ts';
import { BodyStore } from './uploads/body-store.ts';

/** Time that responses may take which are being sent when the process is asked to stop. */
const DRAIN_MS = 10_000;

/**
 * V8 lets a heap of 40 MB grow by a third before it marks it again: under load every 3 s, each of which costs the event
 * loop 0.1 s. Twice the size takes 25 MB (docs/performance.md). V8 reads the flag after each collection.
 */
setFlagsFromString('--heap-growing-percent=100');

const life = beginProcess('windlass-api');

try {
  await main();
} catch (error) {
  exitOnBadSettings(error);
  throw error;
}

async function main(): Promise<void> {
  const handed = await receiveSecrets(process.env);
  const config = readConfig(handed.environment);
  const { DATABASE_URL, SECRET_KEY, SEAL_PUBLIC_KEY } = config;
  if (!DATABASE_URL || !SECRET_KEY || !SEAL_PUBLIC_KEY) {
    exitWith(
      'windlass: the API needs DATABASE_URL, SECRET_KEY and SEAL_PUBLIC_KEY; `npm start` makes them itself',
    );
  }
  const log = createLog({ level: config.LOG_LEVEL, name: 'api', secrets: listSecrets(config) });
  exitOnUncaughtError(log);
  const directUrl = config.DATABASE_DIRECT_URL;
  const database = openDatabase(DATABASE_URL, { directUrl, max: 20 });
  const notifications = new Notifications(database, log);
  await waitForSchema(database, {
    signal: life.stopping,
    onWait: reason => log.info(reason),
    onNewer: what => log.warn(what),
  });
  await notifications.listen();
  const queues = new JobQueues({
    databaseUrl: directUrl ?? DATABASE_URL,
    redisUrl: config.REDIS_URL,
    log,
  });
  const requestMemory = new RequestMemory(res => identifyAfterWait(context, res.req, res));
  const objects = await openObjectStore(config);
  await waitForStore(database, objects, { log, signal: life.stopping });
  const renewable = { ...config, SECRET_KEY, SEAL_PUBLIC_KEY };
  const context: ApiContext = {
    config: renewable,
    settings: listSettings(handed.environment),
    log,
    database,
    notifications,
    objects,
    freeSpace: new FreeSpace(objects, config.LIMIT_FREE_BYTES),
    bodyStore: new BodyStore(objects, config.LIMIT_FREE_BYTES),
    queues,
    jobWatch: new JobWatch({ database, notifications, log }),
    openJobCounts: new OpenJobCounts(config.LIMIT_OPEN_JOBS),
    longPollQuota: new ResponseQuota('long-poll', config.LIMIT_STREAMS),
    requestMemory,
    sendBuffers: new SendBuffers(),
    columnCache: new ColumnCache(),
    tableReader: new TableReader(objects),
    rawJson: new RawJsonBodies(config, requestMemory),
    passwords: new PasswordVerifier(database, {
      failedLogins: config.LIMIT_FAILED_LOGINS,
      stopping: life.stopping,
    }),
    requestRates: new RequestRates(config.LIMIT_REQUESTS),
    passwordChanges: new OwnPasswordChanges(),
    credentialRates: new CredentialRates(),
    oidc: openOidc(renewable),
    credentialCache: new CredentialCache(notifications),
    metrics: new ApiMetrics(),
    stopping: life.stopping,
  };
  handed.onChange(secrets => renewKeys(renewable, { ...handed.environment, ...secrets }));

  // No requestTimeout: middleware/limit-body-time.ts limits slow bodies, and a part of 5 GiB may take long.
  const app = createApp(context, await loadRoutes());
  const listener = refuseFloods(app, context);
  const server = createServer(
    {
      ...createMessageClasses(app),
      requestTimeout: 0,
      headersTimeout: 15_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: config.LIMIT_HEADER_BYTES,
      // app.ts answers with a problem document.
      requireHostHeader: false,
    },
    listener,
  );
  answerClientErrors(server, { log, headerBytes: config.LIMIT_HEADER_BYTES });
  handleExpectContinue(server, listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.PORT, config.HOST, resolve);
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      exitWith(`windlass: port ${config.PORT} on ${config.HOST} is in use; set PORT to a free one`);
    exitWith(
      `windlass: cannot listen on ${config.HOST}:${config.PORT} (${error.code}); set HOST and PORT`,
    );
  });
  // Such as of a process that has all the files open that it may have.
  server.on('error', err => log.warn({ err }, 'a connection could not be accepted'));
  log.info({ host: config.HOST, port: config.PORT }, 'the API is ready');
  life.ready();

  await life.stopped;
  const closed = new Promise(resolve => server.close(resolve));
  // Waiting requests are answered now, and then keep their connections open.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  await Promise.race([closed, delay(DRAIN_MS)]);
  clearInterval(sweep);
  server.closeAllConnections();
  context.jobWatch.close();
  await Promise.race([
    Promise.allSettled([notifications.close(), context.queues.close()]).then(() =>
      database.close(),
    ),
    delay(3_000),
  ]);
  process.exit(0);
}
