import { sql } from 'drizzle-orm';
import { bigint, index, pgTable, smallint, text, timestamp } from 'drizzle-orm/pg-core';
import type { AuditAction, AuditOutcome } from '../../audit/audit-actions.ts';

/** What an entry tells. Milliseconds, as its JSON has them. */
const told = () => ({
  time: timestamp({ withTimezone: true, mode: 'date', precision: 3 }).notNull().defaultNow(),
  username: text(),
  address: text(),
  action: text().$type<AuditAction>().notNull(),
  target: text(),
  outcome: text().$type<AuditOutcome>().notNull().default('ok'),
  requestId: text(),
});

/**
 * Entries that are not in the chain yet. Whoever changes something inserts its entry in the same transaction, and needs no
 * other right on these tables.
 */
export const auditPending = pgTable('audit_pending', {
  id: bigint({ mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  ...told(),
});

/** The chain, in order. Rows are inserted by the appender, removed from the front by retention, and never changed. */
export const auditEntries = pgTable(
  'audit_entries',
  {
    seq: bigint({ mode: 'number' }).primaryKey(),
    ...told(),
    hash: text().notNull(),
  },
  table => [
    index('audit_entries_username').on(table.username, table.seq),
    index('audit_entries_action').on(table.action, table.seq),
    index('audit_entries_time').on(table.time),
  ],
);

/** One row: what was before the first entry, and the last one. */
export const auditChain = pgTable('audit_chain', {
  id: smallint().primaryKey().default(1),
  beforeSeq: bigint({ mode: 'number' }).notNull().default(0),
  beforeHash: text()
    .notNull()
    .default(sql.raw(`'${'0'.repeat(64)}'`)),
  lastSeq: bigint({ mode: 'number' }).notNull().default(0),
  lastHash: text()
    .notNull()
    .default(sql.raw(`'${'0'.repeat(64)}'`)),
});
