import type pg from 'pg';
import { clientOf, finderOf } from '../primary.ts';

/** Shorter than any wait for a lock: each is seen. */
const LOOK_EVERY_MS = 100;
const TELL_EVERY_MS = 10_000;

/**
 * Sees whose lock the migrating connection waits for, and tells of work that takes long. A connection that waits cannot
 * say so itself. The other one opens at the first look: a migration of empty tables needs none.
 */
export class BackendWatch {
  /** The process that was last seen to have a lock which the connection waited for. */
  holders: string | undefined;
  #client: Promise<pg.Client | undefined> | undefined;
  /** A look on a busy server may outlast the work that it was for. */
  #isLooking = false;
  readonly #open: () => Promise<pg.Client | undefined>;
  readonly #say: (line: string) => void;

  constructor(options: { url: string; say: (line: string) => void }) {
    this.#say = options.say;
    this.#open = async () => {
      const client = new (clientOf(options.url))({
        connectionString: finderOf(options.url).url,
        application_name: 'windlass migrate (watch)',
        connectionTimeoutMillis: 5_000,
        query_timeout: 5_000,
      });
      client.on('error', () => {});
      // Without it lines say less, and nothing else is lost.
      return client.connect().then(
        () => client,
        () => undefined,
      );
    };
  }

  /** Does the work of the connection `pid`; `note` says how far it is. */
  async during<T>(
    work: () => Promise<T>,
    about: { pid: number; label: string; note: () => string },
  ): Promise<T> {
    const began = performance.now();
    let told = began;
    const look = async () => {
      if (this.#isLooking) return;
      this.#isLooking = true;
      const progress = await this.#look(about.pid).catch(() => undefined);
      this.#isLooking = false;
      if (performance.now() - told < TELL_EVERY_MS) return;
      told = performance.now();
      const seconds = Math.round((told - began) / 1000);
      const facts = [about.note(), progress].filter(Boolean).map(fact => `; ${fact}`);
      this.#say(`${about.label} has run for ${seconds} s${facts.join('')}.`);
    };
    const timer = setInterval(look, LOOK_EVERY_MS);
    try {
      return await work();
    } finally {
      clearInterval(timer);
    }
  }

  /** Names processes and how long their transactions last, but not their statements: these may hold secrets. */
  async #look(pid: number): Promise<string | undefined> {
    this.#client ??= this.#open();
    const client = await this.#client;
    const found = await client?.query<{ holders: string | null; phase: string | null }>(
      `select
        (select string_agg(format('process %s (%s, %s for %s s)', pid,
            coalesce(nullif(application_name, ''), usename), coalesce(state, 'busy'),
            coalesce(extract(epoch from clock_timestamp() - xact_start)::int::text, '?')), ', ')
          from pg_stat_activity where pid = any(pg_blocking_pids($1))) as holders,
        (select format('%s, %s %%', phase, 100 * blocks_done / greatest(blocks_total, 1))
          from pg_stat_progress_create_index where pid = $1) as phase`,
      [pid],
    );
    const { holders, phase } = found?.rows[0] ?? {};
    if (!holders) return phase ?? undefined;
    this.holders = holders;
    return `waits for ${holders}`;
  }

  async close(): Promise<void> {
    const client = await this.#client;
    await client?.end().catch(() => {});
  }
}
