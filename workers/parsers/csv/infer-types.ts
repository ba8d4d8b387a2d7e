import type { DuckDBConnection } from '@duckdb/node-api';
import { query } from '../table/duckdb.ts';

/** The possible types of a column, by DuckDB's names. */
export type SqlType =
  | 'BOOLEAN'
  | 'BIGINT'
  | 'DOUBLE'
  | 'DATE'
  | 'TIME'
  | 'TIMESTAMP'
  | 'TIMESTAMPTZ'
  | 'VARCHAR';

export interface Column {
  name: string;
  type: SqlType;
}

/** Types are inferred from the first rows; a later value that does not fit is an error with its place. */
const SAMPLE_ROWS = 50_000;
const SAMPLE_CELLS = 1_000_000;
const MIN_ROWS = 1_000;
/** Bytes; a longer value is a text. */
const MAX_TYPED_LENGTH = 64;
/** Columns in one query, whose plan grows with them. */
const BATCH = 100;

const BOOLEAN = 1;
const INTEGER = 2;
const LARGE = 4;
const NUMBER = 8;
const DATE = 16;
const TIME = 32;
const TIMESTAMP = 64;
const WITH_ZONE = 128;
const TEXT = 256;

/**
 * An SQL expression for the class of a value. Numbers with leading zeros and integers beyond 64 bits are texts: they are
 * identifiers rather than quantities, and would lose digits. Dates are ISO 8601 only, because 01/02/2020 is ambiguous.
 */
const classOf = (value: string) => `CASE
  WHEN ${value} IS NULL THEN 0
  WHEN strlen(${value}) > ${MAX_TYPED_LENGTH} THEN ${TEXT}
  WHEN regexp_full_match(${value}, ' *[-+]?(0|[1-9][0-9]{0,14}) *') THEN ${INTEGER}
  WHEN regexp_full_match(${value}, ' *[-+]?[0-9]+ *') THEN
    CASE WHEN regexp_full_match(${value}, ' *[-+]?[1-9][0-9]* *') AND TRY_CAST(${value} AS BIGINT) IS NOT NULL
    THEN ${LARGE} ELSE ${TEXT} END
  WHEN regexp_full_match(${value}, ' *[-+]?((0|[1-9][0-9]*)\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)? *')
    OR regexp_full_match(${value}, ' *([-+]?inf(inity)?|nan) *', 'i') THEN
    CASE WHEN TRY_CAST(${value} AS DOUBLE) IS NOT NULL THEN ${NUMBER} ELSE ${TEXT} END
  WHEN lower(${value}) IN ('true', 'false') THEN ${BOOLEAN}
  WHEN regexp_full_match(${value}, '[0-9]{4}-[0-9]{2}-[0-9]{2}') AND TRY_CAST(${value} AS DATE) IS NOT NULL THEN ${DATE}
  WHEN regexp_full_match(${value}, '[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6})?')
    AND TRY_CAST(${value} AS TIME) IS NOT NULL THEN ${TIME}
  WHEN regexp_full_match(${value}, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?')
    AND TRY_CAST(${value} AS TIMESTAMP) IS NOT NULL THEN ${TIMESTAMP}
  WHEN regexp_full_match(${value}, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)? ?(Z|[-+][0-9]{2}(:?[0-9]{2})?)')
    AND TRY_CAST(${value} AS TIMESTAMPTZ) IS NOT NULL THEN ${WITH_ZONE}
  ELSE ${TEXT} END`;

/** The type that can represent values of all these classes. */
export function typeOf(classes: number): SqlType {
  const only = (allowed: number) => classes !== 0 && (classes & ~allowed) === 0;
  if (only(BOOLEAN)) return 'BOOLEAN';
  if (only(INTEGER | LARGE)) return 'BIGINT';
  if (only(INTEGER | LARGE | NUMBER)) return 'DOUBLE';
  if (only(DATE)) return 'DATE';
  if (only(TIME)) return 'TIME';
  if (only(TIMESTAMP | DATE)) return 'TIMESTAMP';
  if (only(WITH_ZONE)) return 'TIMESTAMPTZ';
  return 'VARCHAR';
}

/** The classes of the values in each of the columns c0, c1, … of a relation of texts, by its first rows. */
export async function classifyColumns(
  connection: DuckDBConnection,
  { relation, columns }: { relation: string; columns: number },
): Promise<number[]> {
  const rows = Math.max(MIN_ROWS, Math.min(SAMPLE_ROWS, Math.floor(SAMPLE_CELLS / columns)));
  const classes: number[] = [];
  for (let from = 0; from < columns; from += BATCH) {
    const some = Array.from({ length: Math.min(BATCH, columns - from) }, (_, i) => from + i);
    const [found] = await query(
      connection,
      `SELECT ${some.map(i => `bit_or(${classOf(`c${i}`)}) AS c${i}`).join(', ')}
       FROM (SELECT * FROM ${relation} LIMIT ${rows})`,
    );
    for (const i of some) classes.push(Number(found?.[`c${i}`] ?? 0));
  }
  return classes;
}

/** The class of each value of the first record. */
export async function classifyFirst(
  connection: DuckDBConnection,
  { first, nulls }: { first: string[]; nulls: string[] },
): Promise<number[]> {
  await connection.run('CREATE TEMP TABLE first (value VARCHAR)');
  const appender = await connection.createAppender('first');
  for (const value of first) {
    if (value === '' || nulls.includes(value)) appender.appendNull();
    else appender.appendVarchar(value);
    appender.endRow();
  }
  appender.closeSync();
  const rows = await query(connection, `SELECT ${classOf('value')} AS class FROM first`);
  await connection.run('DROP TABLE first');
  return rows.map(row => Number(row.class));
}

/** Whether the first record is a header: it has a text above a column without texts, or all columns are texts. */
export function looksLikeHeader(first: number[], below: number[]): boolean {
  if (below.every(classes => classes === 0))
    return first.every(classes => classes === 0 || classes === TEXT);
  const types = below.map(typeOf);
  if (types.every(type => type === 'VARCHAR')) return true;
  return types.some(
    (type, i) => type !== 'VARCHAR' && typeOf((below[i] ?? 0) | (first[i] ?? 0)) === 'VARCHAR',
  );
}
