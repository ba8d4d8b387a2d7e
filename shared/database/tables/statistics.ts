import { sql } from 'drizzle-orm';
import { integer, pgTable, primaryKey, real, smallint, text } from 'drizzle-orm/pg-core';
import { time } from './columns.ts';

/**
 * How jobs fared, by the minute in which they ended and their kind; written by upkeep, see job-statistics.ts there. A row is
 * there where there is anything to tell.
 */
export const jobStatistics = pgTable(
  'job_statistics',
  {
    minute: time().notNull(),
    kind: text().notNull(),
    succeeded: integer().notNull().default(0),
    failed: integer().notNull().default(0),
    cancelled: integer().notNull().default(0),
    /** Jobs whose time from creation to start is below each of DURATION_BOUNDS, and not below the one before. */
    waits: integer().array().notNull().default(sql`'{}'`),
    /** Seconds. */
    longestWait: real(),
    /** As `waits`, of the times from start to end. */
    durations: integer().array().notNull().default(sql`'{}'`),
    longestDuration: real(),
    /** Jobs at a moment of this minute; null where nobody looked. */
    waiting: integer(),
    running: integer(),
  },
  table => [primaryKey({ columns: [table.minute, table.kind] })],
);

/** Jobs that ended, and were removed before their minute was counted: until it is. */
export const uncountedJobs = pgTable('uncounted_jobs', {
  id: text().primaryKey(),
  kind: text().notNull(),
  state: text().notNull(),
  created: time().notNull(),
  started: time(),
  finished: time().notNull(),
});

/** One row, which the counting process locks: the minute up to which ends are counted, and when the depth was read. */
export const jobStatisticsProgress = pgTable('job_statistics_progress', {
  id: smallint().primaryKey().default(1),
  endedUntil: time().notNull(),
  sampled: time(),
});
