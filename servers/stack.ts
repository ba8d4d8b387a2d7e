import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from '../shared/settings/settings.ts';
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
  /** Resolves with the first line of the service's output that contains the text. */
  logged(text: string): Promise<string>;
  stop(): Promise<void>;
}

interface StackOptions {
  directory: string;
  /** The environment of the service, without settings of Windlass. */
  environment: Record<string, string | undefined>;
  /** The servers of a fleet. Default: the embedded form. */
  settings?: Record<string, string>;
}

/** Starts the service like `npm start`, on a free port and with its data in the directory. */
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
    // Not the checkout, which may contain the .env of another service.
    cwd: directory,
    // A separate process group: Ctrl-C reaches only this process, which then stops the service.
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
    logged: text => lines.waitForLine(text),
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
  const line = await Promise.race([lines.waitForLine(READY, START_MS), failed]);
  failed.catch(() => {});
  return line.slice(line.indexOf(READY) + READY.length).trim();
}

/** A free port followed by another one: the second API process of a fleet listens on the next port. */
async function findFreePorts(): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    if (await isFreePort(port + 1)) return port;
  }
}
