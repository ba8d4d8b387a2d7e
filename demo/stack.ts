import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from './client.ts';

export interface Stack {
  client: Client;
  url: string;
  username: string;
  password: string;
  stop(): Promise<void>;
}

/** Starts the embedded form as `npm start` does, on a free port and with data of its own. */
export async function startStack(directory: string): Promise<Stack> {
  const port = await freePort();
  const password = randomBytes(9).toString('base64url');
  const dataDir = join(directory, 'data');
  mkdirSync(dataDir, { mode: 0o711 });
  const main = fileURLToPath(new URL('../embedded/main.js', import.meta.url));
  const child = spawn(process.execPath, [main, 'up'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: Ctrl-C reaches the demonstration, which stops this in order.
    detached: true,
    env: {
      ...process.env,
      PORT: String(port),
      HOST: '127.0.0.1',
      PUBLIC_URL: '',
      DATA_DIR: dataDir,
      DATABASE_URL: '',
      REDIS_URL: '',
      ADMIN_USERNAME: 'admin',
      ADMIN_PASSWORD: password,
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'error',
    },
  });
  const url = await waitUntilReady(child);
  return {
    url,
    username: 'admin',
    password,
    client: new Client(url, 'admin', password),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

async function waitUntilReady(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  child.stderr?.on('data', (text: Buffer) => said.push(String(text)));
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  return new Promise((resolve, reject) => {
    child.once('exit', () =>
      reject(new Error(`the service did not start: ${said.join('').trim().slice(-2_000)}`)),
    );
    lines.on('line', line => {
      const url = /^Windlass is ready at (http\S+)$/.exec(line)?.[1];
      if (url) resolve(url);
    });
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}
