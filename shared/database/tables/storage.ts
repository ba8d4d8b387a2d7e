import { bigint, index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { count, time } from './columns.ts';

/** Bytes that each user stores, without what is in `storage_changes` yet. See user-storage.ts. */
export const userStorage = pgTable('user_storage', {
  owner: text().primaryKey(),
  bytes: count(),
  /** When they were last counted anew; null: never. */
  counted: time(),
});

/**
 * Changes of the bytes that a user stores, written by triggers in the transactions that make them (decision 53). A
 * change that is due later is a video's, which is removed some time after its job.
 */
export const storageChanges = pgTable(
  'storage_changes',
  {
    due: time().notNull().defaultNow(),
    id: bigint({ mode: 'number' }).notNull().generatedAlwaysAsIdentity(),
    owner: text().notNull(),
    bytes: bigint({ mode: 'number' }).notNull(),
  },
  table => [
    primaryKey({ columns: [table.due, table.id] }),
    index('storage_changes_owner').on(table.owner, table.due),
  ],
);

/** One row: the id that the object store of this database has, too. See installation/store-marker.ts. */
export const installation = pgTable('installation', {
  id: text().primaryKey(),
  /** Since when a store is known to have it: from then on an empty store is a wrong one. */
  storeMarked: time(),
});
