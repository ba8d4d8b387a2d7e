import { sql } from 'drizzle-orm';
import { type AnyPgColumn, boolean, index, integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { EngineName } from '../../jobs/payloads/batch.ts';
import type { Startup } from '../../ssh/startup-files.ts';
import { bytea, texts, time } from './columns.ts';

/** The allow-list of remote hosts; `keys` are its pins: see shared/ssh/pins.ts. */
export const hosts = pgTable('hosts', {
  name: text().primaryKey(),
  address: text().notNull(),
  port: integer().notNull().default(22),
  keys: texts().notNull(),
  agent: boolean().notNull().default(false),
  private: boolean().notNull().default(false),
  /** Who may open sessions there; null: everyone. */
  users: texts(),
  /** The entry of the host that this one is reached through; null: workers connect to it themselves. */
  jump: text().references((): AnyPgColumn => hosts.name),
  version: integer().notNull().default(1),
  created: time().notNull().defaultNow(),
});

/**
 * Remote sessions. `opened` is null until the first login; `sealed` is the credential, erased after the clean-up on the
 * host. A trigger ends the sessions of a changed or removed host, and of those behind it (migration 0028, decision 35).
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
    /** The variables of all its commands, sealed; a trigger erases them with the credential: see migration 0029. */
    sealedEnv: bytea(),
    /** The names of these that are shown. */
    envNames: texts(),
    /** When the account's start-up files are read: once a connection, or by each command. */
    startup: text().$type<Startup>().notNull().default('once'),
    /** Its login needed answers of its user: nobody else can repeat it. Such a session lives with its connection. */
    interactive: boolean().notNull().default(false),
    /** The worker that has the connection of such a session, or its login under way. */
    holder: text(),
    /** Until when its login waits for answers. */
    challengeExpires: time(),
    /** What was answered, sealed: until the worker takes it, which it does at once. */
    answers: bytea(),
    /** The account's shell, so that further connections need not ask the host. */
    shell: text(),
    /** The batch systems of its host; null: not known. */
    engines: texts<EngineName>(),
    created: time().notNull().defaultNow(),
    accessed: time().notNull().defaultNow(),
    opened: time(),
    ended: time(),
    /** Why, where its user did not end it and it was not idle: `host_changed`. */
    endReason: text(),
  },
  table => [
    index('sessions_owner').on(table.owner, table.sid).where(sql`ended is null`),
    index('sessions_idle').on(table.accessed).where(sql`sealed is not null`),
    index('sessions_ended')
      .on(table.ended)
      .where(sql`ended is not null and sealed is null`)
      .concurrently(),
  ],
);

/** When the batch jobs of a host are asked for next, by whom: one worker at a time polls a host. See workers/batch/. */
export const batchPolls = pgTable(
  'batch_polls',
  {
    hostname: text().primaryKey(),
    due: time().notNull().defaultNow(),
    /** The last one. */
    worker: text(),
    /** The account whose batch system was asked last. */
    turn: text().notNull().default(''),
  },
  table => [index('batch_polls_due').on(table.due)],
);

export type SessionRow = typeof sessions.$inferSelect;
export type HostRow = typeof hosts.$inferSelect;
