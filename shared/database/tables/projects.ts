import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { ArtifactKind, ColumnType, Encoding } from '../../uploads/parsers.ts';
import { count, storedBy, time } from './columns.ts';

/** Projects. `deleted` hides a project and all below it at once; upkeep removes the rows and objects. */
export const projects = pgTable('projects', {
  pid: text().primaryKey(),
  name: text().notNull(),
  description: text().notNull().default(''),
  version: integer().notNull().default(1),
  created: time().notNull().defaultNow(),
  updated: time().notNull().defaultNow(),
  deleted: time(),
});

export type Role = 'administrator' | 'writer' | 'reader';

/** An upper bound of the bytes that a project stores: additions count at once, deletions when the quota is reached. */
export const projectBytes = pgTable('project_bytes', {
  project: text()
    .primaryKey()
    .references(() => projects.pid, { onDelete: 'cascade' }),
  bytes: count(),
});

const ofProject = () =>
  text()
    .notNull()
    .references(() => projects.pid, { onDelete: 'cascade' });

/** The members of a project with their roles. */
export const members = pgTable(
  'project_members',
  {
    project: ofProject(),
    username: text().notNull(),
    role: text().$type<Role>().notNull(),
  },
  table => [
    primaryKey({ columns: [table.project, table.username] }),
    index('project_members_username').on(table.username, table.project),
  ],
);

export const models = pgTable(
  'models',
  {
    mid: text().primaryKey(),
    project: ofProject(),
    type: text().notNull(),
    name: text().notNull(),
    description: text().notNull().default(''),
    marking: text().notNull().default(''),
    /** Sum of its artifacts' sizes. */
    bytes: count(),
    /** Increments with changes of the record, its artifacts and its parses. */
    version: integer().notNull().default(1),
    created: time().notNull().defaultNow(),
    updated: time().notNull().defaultNow(),
  },
  table => [index('models_project').on(table.project, table.mid)],
);

export const ofModel = () =>
  text()
    .notNull()
    .references(() => models.mid, { onDelete: 'cascade' });

/** The few values because of which a column of a CSV file is text. */
export interface OddValues {
  /** The type of all other values. */
  type: ColumnType;
  others: number;
  /** The row is counted from 0; the value may be cut. */
  first: { row: number; value: string };
}

/** The least or the greatest value; null where there is none. Integers are texts, as JSON numbers lose precision. */
export type Bound = string | number | boolean | null;

/** A value, cut where it says so, and how many rows have the whole one. */
export interface ValueCount {
  value: string;
  count: number;
  cut?: true;
}

/** What the table parsers found out about a column; `top` are the commonest values of a text column. */
export interface ColumnStatistics {
  name: string;
  type: ColumnType;
  min: Bound;
  max: Bound;
  nulls: number;
  /** The unit as the file names it. */
  unit?: string;
  nearly?: OddValues;
  top?: ValueCount[];
}

/** The dialect of a CSV file, as found or asked for. */
export interface CsvDialect {
  encoding: Encoding;
  delimiter: string;
  quote: string;
  decimal: '.' | ',';
  header: boolean;
  /** Whether the header was recognized by its texts alone. */
  headerGuessed?: boolean;
  lineBreak: 'LF' | 'CRLF' | 'CR' | 'mixed';
  comment: string | null;
  /** Lines before the first record. */
  skip: number;
  units: boolean;
  nulls: string[];
}

/** Artifacts of a model. The value of a parameter is in `value`; the bytes of others are in the object store. */
export const artifacts = pgTable(
  'artifacts',
  {
    model: ofModel(),
    aid: text().notNull(),
    kind: text().$type<'parameter' | ArtifactKind>().notNull(),
    input: boolean().notNull().default(false),
    /** Bytes. */
    size: count(),
    /** The value of a parameter: JSON, byte for byte as sent. */
    value: text(),
    object: text(),
    /** Set for tables and arrays; an array is one column. */
    rows: bigint({ mode: 'number' }),
    columns: jsonb().$type<ColumnStatistics[]>(),
    dialect: jsonb().$type<CsvDialect>(),
    /** The name in the upload's `aids` of the file that it was made from; null in rows of earlier releases. */
    madeOf: text(),
    storedBy: storedBy(),
    version: integer().notNull().default(1),
    updated: time().notNull().defaultNow(),
  },
  table => [
    primaryKey({ columns: [table.model, table.aid] }),
    index('artifacts_object').on(table.object).where(sql`object is not null`),
    index('artifacts_stored_by')
      .on(table.storedBy)
      .where(sql`stored_by is not null`)
      .concurrently(),
    check('artifacts_value', sql`value is null or value is json`),
  ],
);

/** A project's cache: named references to videos in the object store. */
export const cacheEntries = pgTable(
  'cache_entries',
  {
    project: ofProject(),
    key: text().notNull(),
    object: text().notNull(),
    type: text().notNull(),
    size: count(),
    /** What is known of its object, whose key the previous release compares; null in rows of 0.1.0. */
    about: jsonb().$type<{ object: string; frames: number }>(),
    storedBy: storedBy(),
    created: time().notNull().defaultNow(),
    /** When it was last read, to the minute. */
    used: time().notNull().defaultNow(),
  },
  table => [
    primaryKey({ columns: [table.project, table.key] }),
    index('cache_entries_object').on(table.object),
    // With the size, so that a project's cache is summed up in the index alone.
    index('cache_entries_used').on(table.project, table.used, table.size).concurrently(),
    index('cache_entries_stored_by')
      .on(table.storedBy)
      .where(sql`stored_by is not null`)
      .concurrently(),
  ],
);

/** Client state, byte for byte as sent. Equal bytes in one project are one bookmark. */
export const bookmarks = pgTable(
  'bookmarks',
  {
    bid: text().primaryKey(),
    project: ofProject(),
    /** SHA-256 of the content. */
    hash: text().notNull(),
    content: text().notNull(),
    /** Bytes of the content; 0 in rows of 0.1.0. */
    size: count(),
    storedBy: storedBy(),
    created: time().notNull().defaultNow(),
  },
  table => [
    uniqueIndex('bookmarks_content').on(table.project, table.hash),
    index('bookmarks_stored_by')
      .on(table.storedBy)
      .where(sql`stored_by is not null`)
      .concurrently(),
    check('bookmarks_content_json', sql`content is json object`),
  ],
);

export type ProjectRow = typeof projects.$inferSelect;
export type ModelRow = typeof models.$inferSelect;
