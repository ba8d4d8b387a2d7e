import { EventEmitter } from 'node:events';
import pg from 'pg';
import { ConnectionDelay } from '../database/connection-delay.ts';
import type { DirectConnection } from '../database/direct-connection.ts';
import { clientOf, finderOf } from '../database/primary.ts';

const MAX_CONNECTIONS = 4;

/**
 * One pool for all BullMQ queues and workers of a process; BullMQ opens one for each, and a connection for what each
 * worker listens to. Statements take a millisecond: one connection is enough but under load.
 */
export class BullmqPgPool {
  readonly #pool: pg.Pool;
  readonly #direct: DirectConnection | undefined;
  readonly #delay = new ConnectionDelay(() => this.#running === 0);
  #running = 0;

  constructor(url: string, direct: DirectConnection | undefined) {
    this.#direct = direct;
    // With these time-outs a worker was back 3.5 s after its connection fell silent, without them not within 80 s.
    this.#pool = new pg.Pool({
      connectionString: finderOf(url).url,
      Client: clientOf(url),
      max: MAX_CONNECTIONS,
      query_timeout: 10_000,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      application_name: `${process.title}-queue`,
      // Entries lost in a crash of the database are added again: commits need not wait for the disk.
      options:
        '-c synchronous_commit=off -c search_path=bullmq -c default_transaction_isolation=read\\ committed',
    });
    this.#pool.on('error', () => {});
  }

  /** What BullMQ takes for a pool. */
  connection(): pg.Pool {
    const query = (text: string, values?: unknown[]) => this.#query(text, values);
    const connect = async () => new BullmqPgClient({ query, direct: this.#direct });
    const { options } = this.#pool;
    const pool = { options, query, connect, end: async () => {}, on: () => pool };
    return pool as unknown as pg.Pool;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  #query(text: string, values?: unknown[]): Promise<pg.QueryResult> {
    return this.#delay.run(async () => {
      this.#running++;
      try {
        return await this.#pool.query(text, values);
      } finally {
        this.#running--;
        this.#delay.next();
      }
    });
  }
}

const LISTEN = /^LISTEN (\w+);$/m;

/** Serves BullMQ as a connection of its own: sends through the pool, and listens on the direct connection. */
class BullmqPgClient extends EventEmitter {
  readonly #query: (text: string, values?: unknown[]) => Promise<unknown>;
  readonly #direct: DirectConnection | undefined;
  #channel: string | undefined;

  constructor(options: {
    query: (text: string, values?: unknown[]) => Promise<unknown>;
    direct: DirectConnection | undefined;
  }) {
    super();
    this.#query = options.query;
    this.#direct = options.direct;
  }

  async query(text: string, values?: unknown[]): Promise<unknown> {
    const channel = LISTEN.exec(text)?.[1];
    if (channel) {
      this.#channel = channel;
      await this.#direct?.listen(channel, this.#receive);
      return { rows: [] };
    }
    // The name by which BullMQ would find this connection in a list of all.
    if (text.includes(`set_config('application_name'`)) return { rows: [] };
    return this.#query(text, values);
  }

  release(): void {
    if (this.#channel) this.#direct?.unlisten(this.#channel, this.#receive);
  }

  readonly #receive = (payload: string) => {
    this.emit('notification', { channel: this.#channel, payload });
  };
}
