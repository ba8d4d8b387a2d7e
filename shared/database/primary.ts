import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import {
  addressOf,
  requiresScram,
  type ServerAddress,
  splitHosts,
  withoutOurs,
} from './host-urls.ts';
import { openScramSocket } from './require-scram.ts';
import { socketErrors } from './socket.ts';
import { type DatabaseTls, describeTlsFailure, tlsOf } from './tls.ts';

const { Client } = pg;

/** Longer than a server takes to answer, shorter than those who wait for a connection do. */
const ANSWER_MS = 3_000;
/** The other servers have so long to answer after the first primary has. */
const OTHERS_MS = 300;

interface Primary extends ServerAddress {
  /** Counts promotions: an old primary that came back has an older one. */
  timeline: number;
}

/** Finds the primary among the servers of a URL. It is asked for again once a connection has failed. */
export class PrimaryFinder {
  /** Whether its servers have to authenticate by SCRAM-SHA-256. */
  readonly requiresScram: boolean;
  readonly tls: DatabaseTls | undefined;
  readonly #urls: string[];
  #found: Promise<ServerAddress> | undefined;

  constructor(url: string) {
    this.requiresScram = requiresScram(url);
    this.tls = tlsOf(url);
    this.#urls = splitHosts(url).map(withoutOurs);
  }

  /** The URL of the first server: for all that is the same for each. */
  get url(): string {
    return this.#urls[0] ?? '';
  }

  /** Undefined: the URL names no host. */
  async find(): Promise<ServerAddress | undefined> {
    if (this.#urls.length < 2) return addressOf(this.url);
    this.#found ??= this.#search().catch(error => {
      this.#found = undefined;
      throw error;
    });
    return this.#found;
  }

  forget(): void {
    this.#found = undefined;
  }

  async #search(): Promise<ServerAddress> {
    const primaries: Primary[] = [];
    const asked = this.#urls.map(async url =>
      primaries.push(await askWhetherPrimary({ connectionString: url, ...waysOf(this) })),
    );
    const first = Promise.any(asked).then(() => delay(OTHERS_MS));
    await Promise.race([Promise.allSettled(asked), first.catch(() => {})]);
    const [newest] = primaries.sort((a, b) => b.timeline - a.timeline);
    if (newest) return newest;
    const reasons = await Promise.all(asked.map(each => each.catch((error: unknown) => error)));
    const error = new Error('no server of DATABASE_URL is a primary that answers', {
      // What all of them refuse is told, and a fault of TLS of any: the others may be standbys.
      cause:
        reasons.find(reason => describeTlsFailure(reason)) ??
        (reasons.every(isRefusal) ? reasons[0] : undefined),
    });
    socketErrors.add(error);
    throw error;
  }
}

/** Rejects unless it is. */
async function askWhetherPrimary(server: pg.ClientConfig): Promise<Primary> {
  const client = new Client({
    ...server,
    application_name: process.title,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ file: string | null }>(
      'select case when not pg_is_in_recovery() then pg_walfile_name(pg_current_wal_lsn()) end as file',
    );
    const file = rows[0]?.file;
    if (!file) throw new Error('it is a standby');
    return {
      host: client.host,
      port: client.port,
      timeline: Number.parseInt(file.slice(0, 8), 16),
    };
  } finally {
    await client.end().catch(() => {});
  }
}

/** Whether the server, or its certificate, says what is wrong. */
const isRefusal = (error: unknown) =>
  (error instanceof Error && 'severity' in error) || describeTlsFailure(error) !== undefined;

/** How `pg` connects. It looks for what is missing in the environment. */
const waysOf = ({ requiresScram, tls }: PrimaryFinder): pg.ClientConfig => ({
  // A copy: `pg` hides the key in it.
  ssl: tls ? { ...tls.options } : false,
  ...(tls && { sslnegotiation: tls.isDirect ? 'direct' : 'postgres' }),
  ...(requiresScram && { stream: openScramSocket }),
});

const finders = new Map<string, PrimaryFinder>();

/** The finder of this URL, which all connections of the process share. */
export function finderOf(url: string): PrimaryFinder {
  const finder = finders.get(url) ?? new PrimaryFinder(url);
  finders.set(url, finder);
  return finder;
}

/** The class of connections of `pg` that lead to the primary of this URL. Its `connectionString` is the finder's. */
export function clientOf(url: string): typeof pg.Client {
  const finder = finderOf(url);
  return class extends Client {
    constructor(config: pg.ClientConfig) {
      super({ ...config, ...waysOf(finder) });
    }

    override connect(): Promise<never>;
    override connect(callback: (error?: Error) => void): void;
    override connect(callback?: (error?: Error) => void): Promise<never> | undefined {
      const connected = this.#connectToPrimary();
      if (!callback) return connected;
      connected.then(() => callback(), callback);
      return undefined;
    }

    async #connectToPrimary(): Promise<never> {
      this.on('error', () => finder.forget());
      const place = await finder.find();
      Object.assign(this, place);
      try {
        return (await super.connect()) as never;
      } catch (error) {
        finder.forget();
        // Where the server said nothing, nobody could be told by its code that this is about the database.
        if (error instanceof Error && !('severity' in error)) socketErrors.add(error);
        throw error;
      }
    }
  };
}
