import { sql } from 'drizzle-orm';
import { boolean, index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import { bytea, time } from './columns.ts';

/** Remote hosts that may be connected to; `keys` are the pinned public host keys, `ssh-ed25519 AAAA…`. */
export const hosts = pgTable('hosts', {
  name: text().primaryKey(),
  address: text().notNull(),
  port: integer().notNull().default(22),
  keys: text().array().notNull(),
  agent: boolean().notNull().default(false),
  private: boolean().notNull().default(false),
  version: integer().notNull().default(1),
  created: time().notNull().defaultNow(),
});

/**
 * Remote sessions. `opened` is null until its connect job has logged in; `ended` is set by DELETE and by the time-out;
 * `sealed` is erased once its jobs are stopped and cleaned up on the host.
 */
export const sessions = pgTable(
  'sessions',
  {
    sid: text().primaryKey(),
    owner: text().notNull(),
    hostname: text().notNull(),
    username: text().notNull(),
    agent: boolean().notNull(),
    sealed: bytea(),
    /** The account's shell as the host named it, so that a second connection need not ask. */
    shell: text(),
    created: time().notNull().defaultNow(),
    accessed: time().notNull().defaultNow(),
    opened: time(),
    ended: time(),
  },
  table => [
    index('sessions_owner').on(table.owner, table.sid).where(sql`ended is null`),
    index('sessions_idle').on(table.accessed).where(sql`sealed is not null`),
  ],
);

export type SessionRow = typeof sessions.$inferSelect;
export type HostRow = typeof hosts.$inferSelect;
