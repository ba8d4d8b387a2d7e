import { Redis } from 'ioredis';
import { findProgram } from '../../../scripts/programs.ts';
import { launchRedis } from '../../../servers/backing-services.ts';
import { endChild } from '../../../servers/processes.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { startOnFreePort } from './start-on-free-port.ts';

export interface TestRedis {
  url: string;
  host: '127.0.0.1';
  port: number;
  flushall(): Promise<void>;
  /** Sends it a command, as an administrator does. */
  send(command: string, args: (string | number)[]): Promise<unknown>;
  /** Ends the server as a crash does; all it held is gone, for nothing is written to disk. */
  down(): Promise<void>;
  /** Starts it again, empty, on the same port. */
  up(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a Redis of its own, on a free port of 127.0.0.1, with neither AOF nor snapshots. */
export async function startRedis(): Promise<TestRedis> {
  const program = findProgram('redis-server');
  if (program === undefined) throw new Error('There is no redis-server; see missingPrograms().');
  const directory = makeTempDir('redis');
  const start = (port: number) => launchRedis({ program, directory: directory.path, port });
  const { port, started } = await startOnFreePort(start);
  let running = started;
  const redis: TestRedis = {
    url: `redis://127.0.0.1:${port}`,
    host: '127.0.0.1',
    port,
    async flushall() {
      await redis.send('flushall', []);
    },
    send: (command, args) => withClient(port, client => client.call(command, args)),
    async down() {
      await endChild(running, 0);
    },
    async up() {
      running = await start(port);
    },
    async stop() {
      await redis.down();
      directory.remove();
    },
  };
  return redis;
}

async function withClient<T>(port: number, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ host: '127.0.0.1', port, retryStrategy: null, lazyConnect: true });
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}
