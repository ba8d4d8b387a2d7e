import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { prepareDatabase } from '../cli/service/migrate.ts';
import { findFreePort } from '../servers/free-port.ts';
import { awaitExit } from '../servers/processes.ts';
import { generateSealKeys } from '../shared/secrets/secrets.ts';
import { readConfig } from '../shared/settings/config.ts';

export interface Api {
  url: string;
  username: string;
  password: string;
  stop(): Promise<void>;
}

/** Starts one API process without workers and limits, on a migrated database. */
export async function startApi(options: {
  directory: string;
  databaseUrl: string;
  settings?: Record<string, string>;
}): Promise<Api> {
  const port = await findFreePort();
  const password = randomBytes(9).toString('base64url');
  const { publicKey } = await generateSealKeys();
  const settings = {
    HOST: '127.0.0.1',
    PORT: String(port),
    DATABASE_URL: options.databaseUrl,
    DATA_DIR: join(options.directory, 'data'),
    ADMIN_PASSWORD: password,
    SECRET_KEY: randomBytes(32).toString('base64url'),
    SEAL_PUBLIC_KEY: publicKey,
    LOG_LEVEL: 'error',
    LIMIT_REQUESTS: '0',
    LIMIT_OPEN_JOBS: '0',
    ...options.settings,
  };
  const config = readConfig(settings);
  await prepareDatabase(options.databaseUrl, config);
  const child = fork(fileURLToPath(new URL('../api/main.js', import.meta.url)), {
    env: { PATH: process.env.PATH, ...settings },
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${url}/healthz`).catch(() => undefined))?.ok;
  while (!(await isReady())) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error('The API ended before it was ready.');
    await delay(50);
  }
  return {
    url,
    username: config.ADMIN_USERNAME,
    password,
    stop: async () => {
      child.kill('SIGTERM');
      await awaitExit(child);
    },
  };
}
