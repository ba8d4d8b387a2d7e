import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { writeTexts } from '../../shared/database/text-arrays.ts';

/** A row that is locked for longer makes the jobs of its group be written one by one. */
const GROUP_LOCK_TIMEOUT = '200ms';

/**
 * A statement's arguments for several jobs: their ids, and the rest by id. A single job waits `lockTimeout` for its
 * row's lock.
 */
export const argumentsOf = (items: { id: string }[], lockTimeout = '0') => ({
  ids: writeTexts(items.map(({ id }) => id)),
  given: JSON.stringify(Object.fromEntries(items.map(item => [item.id, item]))),
  lockTimeout: items.length > 1 ? GROUP_LOCK_TIMEOUT : lockTimeout,
});

export const anyId = sql`any(${sql.placeholder('ids')}::text[])`;
export const setsLockTimeout = sql`set_config('lock_timeout', ${sql.placeholder('lockTimeout')}, true) <> ''`;

export const withGiven = (db: Db) =>
  db
    .$with('given', { value: sql<unknown>`value`.as('value') })
    .as(sql`select ${sql.placeholder('given')}::jsonb as value`);

/** What is given of the row's job. */
export const given = sql`((select value from given) -> ${jobs.id})`;
export const givenText = (name: string) => sql`${given} ->> ${sql.raw(`'${name}'`)}`;
