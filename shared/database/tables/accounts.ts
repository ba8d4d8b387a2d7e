import { randomInt } from 'node:crypto';
import { boolean, index, integer, pgTable, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { time } from './columns.ts';

/** First versions: each leaves more than a billion changes to its user. */
const FIRST_VERSIONS = 2 ** 30;

/**
 * Users. `version` increments with each change, which ends their logins. A user has a password, or is bound to a subject of
 * an identity provider.
 */
export const users = pgTable(
  'users',
  {
    username: text().primaryKey(),
    /** Null: no password lets this user in. */
    passwordHash: text(),
    administrator: boolean().notNull().default(false),
    /** Nothing lets this user in. */
    disabled: boolean().notNull().default(false),
    /** From a random number: a request of a removed user must not be taken for one of a later user of the same name. */
    version: integer()
      .notNull()
      .default(1)
      .$defaultFn(() => randomInt(1, FIRST_VERSIONS)),
    created: time().notNull().defaultNow(),
    /** OpenID Connect Core 1.0, 2: these two together, and no other claim, name somebody for good. */
    issuer: text(),
    subject: text(),
  },
  table => [uniqueIndex('users_subject').on(table.issuer, table.subject).concurrently()],
);

/**
 * States of logins at the identity provider that ended in a login here, or are about to: SHA-256 of each, until its cookie has
 * expired.
 */
export const spentOidcStates = pgTable(
  'spent_oidc_states',
  { state: text().primaryKey(), expires: time().notNull() },
  table => [index('spent_oidc_states_expires').on(table.expires)],
);

export type UserRow = typeof users.$inferSelect;

/** Cookie logins: `token` is the SHA-256 of the cookie's secret. A login is valid for one `version` of its user. */
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
    /** The hour of the last use. */
    used: time(),
  },
  table => [
    uniqueIndex('tokens_hash').on(table.hash),
    index('tokens_username').on(table.username, table.id),
  ],
);

/**
 * Failed logins since `began`. `key`: an address, an address and an account, or `*` and an account, whose `began` is
 * the last failure. An attempt counts before its password is verified, and is subtracted when that was right: so
 * concurrent attempts count. Keys with `ssh` count what hosts refuse: see login-refusals.ts.
 */
export const failedLogins = pgTable('failed_logins', {
  key: text().primaryKey(),
  failures: integer().notNull(),
  began: time().notNull(),
  /** When the audit was last told: see audited-refusals.ts. */
  audited: time(),
});
