import type { Express } from 'express';
import { createApp } from '../../api/app.ts';
import { RequestRates } from '../../api/concurrency/request-rates.ts';
import { ResponseQuota } from '../../api/concurrency/response-quota.ts';
import type { ApiContext } from '../../api/context.ts';
import { RequestMemory } from '../../api/http/request-memory.ts';
import { SendBuffers } from '../../api/http/send-buffers.ts';
import { CredentialCache } from '../../api/identity/credential-cache.ts';
import { CredentialRates } from '../../api/identity/credential-rates.ts';
import { OwnPasswordChanges } from '../../api/identity/own-password-changes.ts';
import { PasswordVerifier } from '../../api/identity/password-verifier.ts';
import { OpenJobCounts } from '../../api/jobs/requests/open-job-counts.ts';
import { JobWatch } from '../../api/jobs/streaming/job-watch.ts';
import { loadRoutes } from '../../api/load-routes.ts';
import { ApiMetrics } from '../../api/monitoring/api-metrics.ts';
import { RawJsonBodies } from '../../api/raw-json/raw-json-bodies.ts';
import { ColumnCache } from '../../api/tables/column-cache.ts';
import { TableReader } from '../../api/tables/table-reader.ts';
import { BodyStore } from '../../api/uploads/body-store.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { createLog } from '../../shared/process/log.ts';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { listSettings } from '../../shared/settings/list-settings.ts';
import { FreeSpace } from '../../shared/storage/free-space.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { makeTempDir } from '../harness/temp-dir.ts';

export interface IdleApp {
  app: Express;
  context: ApiContext;
  close(): Promise<void>;
}

/** The API as api/main.ts makes it, on a database that is never asked for anything. */
export async function openIdleApp(): Promise<IdleApp> {
  const directory = makeTempDir('idle-app');
  // Port 9 (RFC 863) on this machine: nobody listens there.
  const databaseUrl = 'postgres://nobody@127.0.0.1:9/nowhere';
  const { publicKey } = await generateSealKeys();
  const secrets = { SECRET_KEY: 'x'.repeat(43), SEAL_PUBLIC_KEY: publicKey };
  const config = {
    ...readConfig({ ...secrets, DATABASE_URL: databaseUrl, DATA_DIR: directory.path }),
    ...secrets,
  };
  const log = createLog({ level: 'silent', name: 'api' });
  const database = openDatabase(databaseUrl);
  const notifications = new Notifications(database, log);
  const queues = new JobQueues({ databaseUrl, redisUrl: undefined, log });
  const requestMemory = new RequestMemory(async () => {});
  const objects = await openObjectStore(config);
  const context: ApiContext = {
    config,
    settings: listSettings(secrets),
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
    requestRates: new RequestRates(config.LIMIT_REQUESTS),
    passwordChanges: new OwnPasswordChanges(),
    credentialRates: new CredentialRates(),
    oidc: undefined,
    passwords: new PasswordVerifier(database, {
      failedLogins: config.LIMIT_FAILED_LOGINS,
      stopping: new AbortController().signal,
    }),
    credentialCache: new CredentialCache(notifications),
    metrics: new ApiMetrics(),
    stopping: new AbortController().signal,
  };
  return {
    context,
    app: createApp(context, await loadRoutes()),
    async close() {
      context.jobWatch.close();
      await context.queues.close();
      await database.close();
      directory.remove();
    },
  };
}
