import { boolean, index, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { time } from './columns.ts';

/** People and programs that may use the service. `version` changes with the password, so that a remembered check ends. */
export const users = pgTable('users', {
  username: text().primaryKey(),
  passwordHash: text().notNull(),
  administrator: boolean().notNull().default(false),
  version: integer().notNull().default(1),
  created: time().notNull().defaultNow(),
});

/** Cookie sessions: `token` is the SHA-256 of what the cookie holds; they end with the password they were made with. */
export const logins = pgTable(
  'logins',
  {
    token: text().primaryKey(),
    username: text().notNull(),
    userVersion: integer().notNull(),
    created: time().notNull().defaultNow(),
    expires: time().notNull(),
  },
  table => [index('logins_username').on(table.username), index('logins_expires').on(table.expires)],
);

/** API tokens: `hash` is the SHA-256 of the token, which is shown once. */
export const tokens = pgTable(
  'tokens',
  {
    id: text().primaryKey(),
    hash: text().notNull(),
    username: text().notNull(),
    name: text().notNull(),
    scope: text().$type<'read' | 'write'>().notNull(),
    created: time().notNull().defaultNow(),
    expires: time(),
  },
  table => [
    uniqueIndex('tokens_hash').on(table.hash),
    index('tokens_username').on(table.username, table.id),
  ],
);

/**
 * Failed logins since `began`, by who tries: `key` is an address, or an address and an account. A try is counted before
 * it is checked and taken back when it was right, so that tries at the same time count as well.
 */
export const failedLogins = pgTable('failed_logins', {
  key: text().primaryKey(),
  failures: integer().notNull(),
  began: time().notNull(),
});
