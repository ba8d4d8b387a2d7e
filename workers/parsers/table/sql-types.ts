import type { ColumnType } from '../../../shared/uploads/parsers.ts';

/** The possible types of a column, by DuckDB's names, from the narrowest to the widest. */
export const SQL_TYPES = [
  'BOOLEAN',
  'BIGINT',
  'DOUBLE',
  'DATE',
  'TIME',
  'TIMESTAMP',
  'TIMESTAMPTZ',
  'VARCHAR',
] as const;
export type SqlType = (typeof SQL_TYPES)[number];

/** What an asked type may become: the times of a column all have a zone, or none. */
export const ASKED: Record<ColumnType, readonly [SqlType, ...SqlType[]]> = {
  boolean: ['BOOLEAN'],
  integer: ['BIGINT'],
  number: ['DOUBLE'],
  date: ['DATE'],
  time: ['TIME'],
  timestamp: ['TIMESTAMP', 'TIMESTAMPTZ'],
  text: ['VARCHAR'],
};

/** What clients call it: the inverse of ASKED. */
export const TYPE_OF_SQL: Record<SqlType, ColumnType> = {
  BOOLEAN: 'boolean',
  BIGINT: 'integer',
  DOUBLE: 'number',
  DATE: 'date',
  TIME: 'time',
  TIMESTAMP: 'timestamp',
  TIMESTAMPTZ: 'timestamp',
  VARCHAR: 'text',
};
