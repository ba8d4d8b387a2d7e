import { setTimeout as delay } from 'node:timers/promises';
import { QUEUES } from '../jobs/catalog.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { applyMigration } from './migrations/apply-migration.ts';
import { BackendWatch } from './migrations/backend-watch.ts';
import { MIGRATIONS, type Migration, readMigrations } from './migrations/migration-files.ts';
import { LOCK_TIMEOUT, MigrationError, MigrationSession } from './migrations/session.ts';
import { describeNewerSchema } from './newer-schema.ts';
import { setForRole } from './pooler.ts';
import { clientOf, finderOf } from './primary.ts';
import { grantRights } from './rights.ts';

const POLL_MS = 250;
const TELL_AFTER_POLLS = 20;

/** No limit on a statement's time. A process that hangs or is cut off keeps no locks. */
const SETTINGS = `
  set statement_timeout = 0;
  set lock_timeout = '${LOCK_TIMEOUT}';
  set idle_in_transaction_session_timeout = '10s';
  set default_transaction_isolation = 'read committed';
  set tcp_keepalives_idle = 10;
  set tcp_keepalives_interval = 5;
  set tcp_keepalives_count = 3;`;

interface MigrateOptions {
  /** Told of waits and of long work, in one line. */
  say?: (line: string) => void;
  /** Ends it between two commits; the next run goes on there. */
  signal?: AbortSignal;
  folder?: string;
  /** The `when` of the last migration that is applied, for tables as an earlier release has them. */
  upTo?: number;
  /** The role gets the settings of the pool, for connections through a pooler. */
  setsRole?: boolean;
}

/**
 * Applies the migrations of Windlass and of the queue, on a connection of their own. Safe to run several times at once,
 * beside running programs, and again after any death; see decision 29.
 */
export async function migrateDatabase(url: string, options: MigrateOptions = {}): Promise<void> {
  const { say = () => {}, signal, folder = MIGRATIONS, upTo = Infinity, setsRole } = options;
  const client = new (clientOf(url))({
    connectionString: finderOf(url).url,
    // Not `windlass-…`, whose long transactions the dispatcher ends.
    application_name: 'windlass migrate',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  // Without a listener a broken connection would end the process; the query rejects as well.
  client.on('error', () => {});
  await client.connect();
  const stop = () => void client.end().catch(() => {});
  signal?.addEventListener('abort', stop);
  const watch = new BackendWatch({ url, say });
  try {
    await client.query(SETTINGS);
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const pid = rows[0]?.pid ?? 0;
    const session = new MigrationSession({ client, pid, watch, say, signal });
    await takeLock(session);
    const { pending, unknown } = await compareMigrations(session, folder);
    if (unknown > 0) say(`${describeNewerSchema(unknown)} Rights and tables stay as they are.`);
    for (const migration of pending)
      if (migration.when <= upTo) await applyMigration(session, migration);
    if (setsRole) await setForRole(client);
    const label = 'The migration of the queue';
    const migrateQueue = async () => {
      await (await import('bullmq')).runMigrations(client);
      await makeUnlogged(session);
      await makeSequences(session);
    };
    await session.tell(label, () => session.retry(label, migrateQueue));
    // rights.ts names the tables of its own release: it would revoke the rights to newer ones.
    if (folder === MIGRATIONS && upTo === Infinity && unknown === 0)
      await session.retry('Granting rights', () => grantRights(client));
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof MigrationError ? error : new MigrationError('The migration', error);
  } finally {
    signal?.removeEventListener('abort', stop);
    await watch.close();
    await client.end().catch(() => {});
  }
}

/** Those of BullMQ's tables that hold entries, each before the one that it refers to. */
const ENTRIES = ['job_dependency', 'job_log', 'event', 'job'];

/** Entries that a crash has taken are added again: none of them has to be in the WAL. */
async function makeUnlogged({ client }: MigrationSession): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'bullmq'::regnamespace and relpersistence = 'p' and relname = any($1)`,
    [ENTRIES],
  );
  for (const name of ENTRIES.filter(entry => rows.some(row => row.name === entry)))
    await client.query(`alter table bullmq.${name} set unlogged`);
}

/** BullMQ would make them when it first adds several entries at once; the roles of running programs must not. */
async function makeSequences({ client }: MigrationSession): Promise<void> {
  for (const queue of QUEUES) {
    const { rows } = await client.query<{ name: string }>(
      'select quote_ident(bullmq.job_id_seq_name($1)) as name',
      [queue],
    );
    await client.query(`create sequence if not exists bullmq.${rows[0]?.name}`);
  }
}

/**
 * Polls: waiting within the statement would hold a snapshot, whose end the owner's `create index concurrently` waits
 * for in turn.
 */
async function takeLock({ client, say, signal }: MigrationSession): Promise<void> {
  for (let polls = 1; ; polls++) {
    signal?.throwIfAborted();
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock($1) as taken',
      [ADVISORY_LOCKS.migration],
    );
    if (rows[0]?.taken) return;
    if (polls === TELL_AFTER_POLLS)
      say('Another process migrates this database; waiting for its end.');
    await delay(POLL_MS, undefined, { signal });
  }
}

/**
 * Those that drizzle's table does not have yet, and how many it has that this release does not know. Reads and creates the table
 * as drizzle's own migrator does.
 */
async function compareMigrations(
  { client }: MigrationSession,
  folder: string,
): Promise<{ pending: Migration[]; unknown: number }> {
  await client.query(`
    create schema if not exists drizzle;
    create table if not exists drizzle.__drizzle_migrations (
      id serial primary key, hash text not null, created_at bigint);
    create table if not exists drizzle.migration_progress (
      migration bigint primary key, hash text not null, statement integer not null, position text);`);
  const { rows } = await client.query<{ at: string }>(
    'select created_at as at from drizzle.__drizzle_migrations',
  );
  const applied = new Set(rows.map(row => Number(row.at)));
  const known = readMigrations(folder);
  const pending = known.filter(({ when }) => !applied.has(when));
  return { pending, unknown: applied.size - (known.length - pending.length) };
}
