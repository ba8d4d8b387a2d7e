import { sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';

/** A row of a group that is locked for longer makes its group be done one by one. */
const GROUP_LOCK_TIMEOUT = '200ms';

/** What a statement about several jobs is given: their ids, and by id the rest. One job waits for a locked row for `lockTimeout`. */
export const parametersOf = (items: { id: string }[], lockTimeout = '0') => ({
  ids: `{${items.map(({ id }) => id).join(',')}}`,
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
