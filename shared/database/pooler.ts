import { sql } from 'drizzle-orm';
import type pg from 'pg';
import { ConfigError } from '../settings/config.ts';
import type { Database } from './connect.ts';
import { SESSION_SETTINGS } from './session-settings.ts';

/** For connections that a pooler opens, which passes no settings on: they have those of the role. */
export async function setForRole(client: pg.Client): Promise<void> {
  for (const [name, value] of Object.entries(SESSION_SETTINGS))
    await client.query(`do $$ begin
      execute format('alter role current_user in database %I set ${name} = %L', current_database(), '${value}');
    end $$`);
}

/** Throws a ConfigError if what LISTEN and locks need is missing. It is silent on a database that cannot be reached. */
export async function requireDirect({ direct, isPooled }: Database): Promise<void> {
  if (await direct.isOwn().catch(() => true)) return;
  if (!isPooled)
    throw new ConfigError([
      'DATABASE_URL leads to a connection pooler, which keeps neither LISTEN nor locks: set DATABASE_DIRECT_URL to the PostgreSQL server itself',
    ]);
  if (await direct.isShared().catch(() => false))
    throw new ConfigError([
      'DATABASE_DIRECT_URL leads to a pooler of transactions, which keeps neither LISTEN nor locks: it must be the PostgreSQL server itself',
    ]);
}

/** Throws a ConfigError unless the connections of a pooler have the settings of the role. */
export async function requireSettings({ db, isPooled }: Database): Promise<void> {
  if (!isPooled) return;
  const names = Object.keys(SESSION_SETTINGS);
  const [row] = await db.execute<Record<string, string>>(
    sql.raw(`select ${names.map(name => `current_setting('${name}') as ${name}`).join()}`),
  );
  const wrong = Object.entries(SESSION_SETTINGS).filter(([name, value]) => row?.[name] !== value);
  if (wrong.length === 0) return;
  const wanted = wrong.map(([name, value]) => `${name} = ${value}`).join(', ');
  throw new ConfigError([
    `DATABASE_URL: the pooler's connections lack ${wanted}: run \`windlass migrate\` with DATABASE_DIRECT_URL and the role of DATABASE_URL, then let the pooler connect anew (PgBouncer: RECONNECT)`,
  ]);
}
