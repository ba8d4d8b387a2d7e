import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core';
import type { StoredError } from '../../errors/errors.ts';
import type { JobState } from '../../jobs/job-states.ts';
import { count, storedBy, texts, time } from './columns.ts';
import { ofModel } from './projects.ts';

/** What stays of a parse when its job's record is removed: columns of the job, with `finished` in ISO 8601. */
export interface ParseEnd {
  state: JobState;
  version: number;
  error: StoredError | null;
  finished: string;
}

/** Malformed rows that were left out; at most a hundred are listed. */
export interface SkippedRows {
  count: number;
  errors: { file: number; row?: number; column?: string; reason: string }[];
}

/** What the client sent to begin an upload through tus: Upload-Length, and Upload-Metadata unchanged. */
export interface TusUpload {
  length: number;
  metadata: string;
}

/** Upload sessions. `job` is the parse, set when `finished` is accepted; its state is the upload's. */
export const uploads = pgTable(
  'uploads',
  {
    uid: text().primaryKey(),
    owner: text().notNull(),
    model: ofModel(),
    parser: text().notNull(),
    parameters: jsonb().$type<unknown>().notNull(),
    aids: texts().notNull(),
    input: boolean().notNull(),
    /** Sum of its parts' sizes. */
    bytes: count(),
    /** The number of its parts, so that no new part has to count the others. Parts that 0.1.0 stored are left out. */
    parts: integer().notNull().default(0),
    /** Increments with changes of the record and its parts. */
    version: integer().notNull().default(1),
    /** Null where the parts are sent one by one. */
    tus: jsonb().$type<TusUpload>(),
    job: text(),
    /** Set when the record of the parse's job is removed. */
    parseEnd: jsonb().$type<ParseEnd>(),
    /** Set with the parse's end. */
    skipped: jsonb().$type<SkippedRows>(),
    created: time().notNull().defaultNow(),
    accessed: time().notNull().defaultNow(),
  },
  table => [
    index('uploads_of_owner').on(table.owner, table.uid).concurrently(),
    index('uploads_model').on(table.model),
    index('uploads_job').on(table.job),
    index('uploads_accessed').on(table.accessed),
  ],
);

/** Completely stored parts of an upload; `digest` is the SHA-256 in base64. */
export const parts = pgTable(
  'upload_parts',
  {
    upload: text()
      .notNull()
      .references(() => uploads.uid, { onDelete: 'cascade' }),
    file: integer().notNull(),
    part: integer().notNull(),
    size: bigint({ mode: 'number' }).notNull(),
    digest: text().notNull(),
    object: text().notNull(),
    stored: time().notNull().defaultNow(),
  },
  table => [
    primaryKey({ columns: [table.upload, table.file, table.part] }),
    index('upload_parts_object').on(table.object),
  ],
);

/** Materialized views: sorted or filtered copies of a table, each made by a job and kept while it is used. */
export const views = pgTable(
  'table_views',
  {
    /** SHA-256 of the source's object and the definition. */
    id: text().primaryKey(),
    source: text().notNull(),
    job: text().notNull(),
    object: text(),
    size: count(),
    rows: bigint({ mode: 'number' }),
    storedBy: storedBy(),
    used: time().notNull().defaultNow(),
  },
  table => [
    index('table_views_source').on(table.source),
    index('table_views_used').on(table.used),
    index('table_views_stored_by')
      .on(table.storedBy)
      .where(sql`stored_by is not null`)
      .concurrently(),
    index('table_views_object').on(table.object).where(sql`object is not null`),
  ],
);

/** Objects that lost a reference. After `due` upkeep deletes those that no row refers to. */
export const pendingDeletions = pgTable(
  'pending_deletions',
  {
    object: text().primaryKey(),
    due: time().notNull().defaultNow(),
  },
  table => [index('pending_deletions_due').on(table.due, table.object).concurrently()],
);

export type UploadRow = typeof uploads.$inferSelect;
