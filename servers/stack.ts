import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from '../shared/settings.ts';
import { Client } from './api-client.ts';
import { findFreePort, isFreePort } from './free-port.ts';
import { type ProcessOutput, readOutput } from './process-output.ts';
import { endWithThisProcess } from './processes.ts';

const START_MS = 120_000;

export interface Stack {
  client: Client;
  url: string;
  username: string;
  password: string;
  /** The first line that the service printed or will print with these words in it. */
  logged(words: string): Promise<string>;
  stop(): Promise<void>;
}

interface StackOptions {
  directory: string;
  /** What the service is started with; settings of Windlass in it are left out. */
  environment: Record<string, string | undefined>;
  /** The fleet's servers. Default: none, the embedded form. */
  settings?: Record<string, string>;
}

/** Starts the service as `npm start` does, on a free port and with data of its own. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { directory, environment, settings = {} } = options;
  const port = await findFreePorts();
  const password = randomBytes(9).toString('base64url');
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir, { mode: 0o711 });
  const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));
  const others = Object.entries(environment).filter(([name]) => !Object.hasOwn(SETTINGS, name));
  const child = spawn(process.execPath, [main, 'up'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Not the checkout, whose .env is another service's.
    cwd: directory,
    // A group of its own: Ctrl-C reaches the demonstration, which stops this in order.
    detached: true,
    env: {
      ...Object.fromEntries(others),
      ...settings,
      PORT: String(port),
      HOST: '127.0.0.1',
      DATA_DIR: dataDir,
      ADMIN_USERNAME: 'admin',
      ADMIN_PASSWORD: password,
      LOG_LEVEL: environment.LOG_LEVEL ?? 'error',
    },
  });
  endWithThisProcess(child);
  const lines = readOutput(child);
  const url = await waitUntilReady(child, lines);
  return {
    url,
    username: 'admin',
    password,
    client: new Client(url, 'admin', password),
    logged: words => lines.find(words),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

const READY = 'Windlass is ready at ';

async function waitUntilReady(child: ChildProcess, lines: ProcessOutput): Promise<string> {
  const failed = once(child, 'exit').then(() => {
    throw new Error(`the service did not start: ${lines.last()}`);
  });
  const line = await Promise.race([lines.find(READY, START_MS), failed]);
  failed.catch(() => {});
  return line.slice(line.indexOf(READY) + READY.length).trim();
}

/** Two ports in a row: the second API process of a fleet listens on the next one. */
async function findFreePorts(): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    if (await isFreePort(port + 1)) return port;
  }
}
