import { sql } from 'drizzle-orm';
import { index, jsonb, pgTable, primaryKey, smallint, text } from 'drizzle-orm/pg-core';
import { bytea, texts, time } from './columns.ts';

/** What a webhook may ask for: how a job ended. */
export const END_STATES = ['succeeded', 'failed', 'cancelled'] as const;

/** Where the ends of a user's jobs are sent to. */
export const webhooks = pgTable(
  'webhooks',
  {
    id: text().primaryKey(),
    owner: text().notNull(),
    url: text().notNull(),
    /** Null: all kinds. */
    kinds: texts(),
    states: texts<(typeof END_STATES)[number]>(),
    /** The key of the signatures, sealed for workers. */
    sealed: bytea().notNull(),
    created: time().notNull().defaultNow(),
    /** Since when the receiver has taken nothing. Null: it took the last message, or was sent none yet. */
    failingSince: time(),
    /** What the last attempt failed with, in words. */
    problem: text(),
    /** When it was disabled: since then it is sent nothing. */
    disabled: time(),
    /** The worker that sends its deliveries now, and until when it may: another one takes over then. */
    takenBy: text(),
    takenUntil: time(),
    /** Before this time nothing is sent, because the last attempt has just failed. */
    notBefore: time(),
    /** When a worker last served it: the one that waits longest is next. */
    served: time(),
  },
  table => [index('webhooks_owner').on(table.owner, table.id)],
);

/** The ends of jobs that are to be sent, or were: a trigger of `jobs` writes them in the transaction that ends the job. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    job: text().notNull(),
    webhook: text().notNull(),
    state: text().$type<'pending' | 'delivered' | 'failed'>().notNull().default('pending'),
    /** When the job ended. */
    created: time().notNull().defaultNow(),
    attempts: smallint().notNull().default(0),
    firstTried: time(),
    lastTried: time(),
    /** When it is tried next, if it is pending. */
    due: time().notNull().defaultNow(),
    /** The HTTP status of the last answer; null where there was none. */
    status: smallint(),
    /** What the last attempt failed with, in words. */
    problem: text(),
    /** The row of the job, kept when that was removed before the delivery. */
    record: jsonb().$type<Record<string, unknown>>(),
  },
  table => [
    primaryKey({ columns: [table.job, table.webhook] }),
    index('webhook_deliveries_due').on(table.webhook, table.due).where(sql`state = 'pending'`),
    index('webhook_deliveries_webhook').on(table.webhook, table.job),
    index('webhook_deliveries_created').on(table.created),
  ],
);

export type WebhookRow = typeof webhooks.$inferSelect;
export type WebhookDeliveryRow = typeof webhookDeliveries.$inferSelect;
