import type { Express } from 'express';
import { ROUTES } from '../../api/all-routes.ts';
import { createApp } from '../../api/app.ts';
import type { ApiContext } from '../../api/context.ts';
import { createContext } from '../../api/create-context.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { createLog } from '../../shared/process/log.ts';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { FreeSpace } from '../../shared/storage/free-space.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

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
  const objects = await openObjectStore(config);
  const freeSpace = new FreeSpace(objects, config.LIMIT_FREE_BYTES);
  const { signal: stopping } = new AbortController();
  const service = { config, log, database, notifications, objects, freeSpace, queues, stopping };
  const context = createContext(service, secrets);
  return {
    context,
    app: createApp(context, ROUTES),
    async close() {
      context.jobWatch.close();
      await context.queues.close();
      await database.close();
      directory.remove();
    },
  };
}
