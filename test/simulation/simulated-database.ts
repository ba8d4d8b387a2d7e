import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { Database } from '../../shared/database/connect.ts';
import { type Actor, settle } from './actor.ts';
import { actors, BEGINNING } from './virtual-time.ts';

/** A change of the product's SQL: a planted fault. */
export type Rewrite = (text: string) => string;

/** What one call did: a statement, or a transaction with all of its statements. */
export interface Done {
  actor: Actor;
  texts: string[];
  parameters: unknown[];
}

const WRITES = /\b(insert into|update "|delete from)/;

type Sql = postgres.Sql;
type Query = ReturnType<Sql['unsafe']>;

/**
 * The database of all actors: one connection to a real PostgreSQL. A statement outside a transaction, and a transaction with
 * all of its statements, is one call of the actor. now() and clock() are the world's time, moved by the steps of the clock.
 */
export class SimulatedDatabase {
  readonly real: Sql;
  readonly database: Database;
  /** Called after each call that may have written. */
  onWrite: (done: Done) => Promise<void> = async () => {};
  /** Called after each call. */
  onDone: (done: Done) => void = () => {};
  /** Called when the actor hears the answer. */
  onHeard: (done: Done) => void = () => {};
  rewrite: Rewrite = text => text;
  /** Worlds that used it. */
  worlds = 0;
  #time = '';

  constructor(url: string) {
    // What prepare() sets ends with the connection, which the driver would replace after half an hour.
    const options = { max: 1, max_lifetime: null, fetch_types: false };
    this.real = postgres(url, { ...options, onnotice: () => {} });
    const sql = this.#wrap(this.real);
    this.database = {
      sql,
      db: drizzle(sql, { casing: 'snake_case' }),
      direct: {
        query: (text: string, parameters: unknown[] = []) =>
          sql.unsafe(text, parameters as never[]),
      } as unknown as Database['direct'],
      isPooled: false,
      wasFull: () => false,
      check: async () => {},
      assertReady: async () => {},
      close: async () => {},
    };
  }

  /** Makes the functions of time, and the dispatchers' lock, whose connections end with their processes. */
  async prepare(): Promise<void> {
    await this.real.unsafe(`
      create schema sim;
      create function sim.now() returns timestamptz language sql stable
        as $$ select current_setting('sim.now')::timestamptz $$;
      create table sim.locks (key bigint primary key, holder text not null, seen float8 not null);
      create function sim.try_lock(bigint, text) returns boolean language sql as $$
        with taken as (
          insert into sim.locks values ($1, $2, current_setting('sim.elapsed')::float8)
          on conflict (key) do update set holder = excluded.holder, seen = excluded.seen
          where locks.holder = excluded.holder or locks.seen < excluded.seen - 10000
          returning key)
        select exists (select from taken) $$;
      create table sim.promoted (job text not null);
      alter table jobs alter created set default sim.now();
      alter table leftover_runs alter since set default sim.now();
      alter table workers alter started set default sim.now();
      alter table workers alter seen set default sim.now();
      set search_path = sim, public, pg_catalog;
      set synchronous_commit = off;
      set enable_seqscan = off;
    `);
    await this.real.unsafe(
      `create or replace function public.clock() returns timestamptz language sql stable as 'select sim.now()'`,
    );
  }

  /** Tells the server the time: `elapsed` ms of the world, and by how many ms its clock was set off. */
  setTime(elapsed: number, offset: number): void {
    const now = new Date(BEGINNING + elapsed + offset).toISOString();
    const time = `select set_config('sim.now', '${now}', false), set_config('sim.elapsed', '${elapsed}', false)`;
    if (time === this.#time) return;
    this.#time = time;
    // In the order of the one connection it comes before what is asked next.
    this.real.unsafe(time).execute();
  }

  async close(): Promise<void> {
    await settle();
    await this.real.end({ timeout: 2 });
  }

  #wrap(client: Sql): Sql {
    return new Proxy(client, {
      apply: (target, self, given) => {
        const query = Reflect.apply(target as never, self, given) as Query;
        const [strings, ...parameters] = given as [TemplateStringsArray, ...unknown[]];
        // As sql(rows) has it, not a statement.
        if (!Array.isArray(strings) || !('raw' in strings)) return query;
        return this.#hold(query, { texts: [strings.join('?')], parameters });
      },
      get: (target, key) => {
        if (key === 'unsafe')
          return (text: string, parameters: unknown[] = []) =>
            this.#hold(this.#unsafe(target, text, parameters), { texts: [text], parameters });
        if (key === 'begin')
          return (work: (tx: Sql) => Promise<unknown>) => this.#transaction(target, work);
        return Reflect.get(target, key);
      },
    });
  }

  #unsafe(client: Sql, text: string, parameters: unknown[]): Query {
    const { name } = currentActor();
    const locked = text.replace('pg_try_advisory_lock($1)', `sim.try_lock($1, '${name}')`);
    const prepare = parameters.length > 0;
    return client.unsafe(this.rewrite(locked), parameters as never[], { prepare });
  }

  /** A query that is a call of the actor once it is awaited. As part of another one it is not awaited. */
  #hold(query: Query, given: Omit<Done, 'actor'>): Query {
    const done = { actor: currentActor(), ...given };
    let result: Promise<unknown> | undefined;
    const begin = () => {
      result ??= this.#call(
        done,
        () =>
          new Promise((resolve, reject) => {
            Object.getPrototypeOf(query).then.call(query, resolve, reject);
          }),
      );
      return result;
    };
    return Object.assign(query, {
      // biome-ignore lint/suspicious/noThenProperty: a query is a promise.
      then: (...both: Parameters<Promise<unknown>['then']>) => begin().then(...both),
      catch: (onError: () => void) => begin().catch(onError),
      finally: (onEnd: () => void) => begin().finally(onEnd),
    }) as Query;
  }

  #transaction(client: Sql, work: (tx: Sql) => Promise<unknown>): Promise<unknown> {
    const done: Done = { actor: currentActor(), texts: [], parameters: [] };
    const record = (tx: Sql) =>
      new Proxy(tx, {
        get: (target, key) => {
          if (key !== 'unsafe') return Reflect.get(target, key);
          return (text: string, parameters: unknown[] = []) => {
            done.texts.push(text);
            done.parameters.push(...parameters);
            return this.#unsafe(target, text, parameters);
          };
        },
      });
    return this.#call(done, () =>
      client.begin(tx => done.actor.run(() => work(record(tx as unknown as Sql)))),
    );
  }

  #call(done: Done, effect: () => Promise<unknown>): Promise<unknown> {
    const { actor, texts } = done;
    // It would end the connections of other tests; none of the simulation is stuck.
    if (texts[0]?.includes('pg_stat_activity')) return Promise.resolve([]);
    const run = async () => {
      const answer = await effect();
      if (texts.some(text => WRITES.test(text))) await this.onWrite(done);
      this.onDone(done);
      return answer;
    };
    const lost = () =>
      Object.assign(new Error('the answer was lost'), { code: 'CONNECTION_CLOSED' });
    return actor.call(() => describe(texts), run, {
      lost,
      onHeard: () => this.onHeard(done),
    });
  }
}

function currentActor(): Actor {
  const actor = actors.getStore();
  if (!actor) throw new Error('no actor asks this of the database');
  return actor;
}

const NAMES: [RegExp, string][] = [
  [/^with "given".* "lease" as/, 'claims'],
  [/^\s*with "seen".* "expired" as/, 'takes expired leases back'],
  [/as lease\s+from "jobs"/, 'looks at the leases'],
  [/insert into "leases"/, 'renews its lease'],
  [/insert into "workers"/, 'writes its heartbeat'],
  [/insert into "?jobs"? /, 'writes the job'],
  [/set "epoch" =/, 'gives slots'],
  [/^with "given".* update "jobs" set "state"/, 'ends the job'],
  [/"cancel_requested" = coalesce/, 'requests the cancel'],
  [/set "state" = case.*"consecutive_losses"/, 'abandons a claim'],
  [/"stdout_bytes" = /, 'stores output'],
  [/set "run_at"/, 'promises to run it (run_at)'],
  [/set "dispatched" = .*"not_before"/, 'defers what it does not support'],
  [/set "dispatched"/, 'looks for entries that are not claimed'],
  [/"not_before" = /, 'releases the job'],
  [/delete from "jobs"/, 'removes rows'],
];

/** The text of statements in the story: empty for what only reads. */
function describe(texts: string[]): string {
  const text = texts.join(' ; ').replace(/\s+/g, ' ');
  const known = NAMES.find(([pattern]) => pattern.test(text));
  return known?.[1] ?? (WRITES.test(text) ? text.slice(0, 120) : '');
}
