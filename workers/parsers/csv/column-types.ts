import type { DuckDBConnection } from '@duckdb/node-api';
import { query } from '../table/duckdb.ts';
import { SQL_TYPES, type SqlType } from '../table/sql-types.ts';

/** How a file writes its values. */
export interface Notation {
  decimal: '.' | ',';
  /** Whether exponents may be Fortran's, as in 1.0D+03; 12D4, without a point, is a name. */
  fortran: boolean;
  /** Whether an empty text, "" in CSV, is a missing value where its column is of another type than text. */
  emptyIsMissing: boolean;
}

/** An SQL expression for a column's value as types other than text read it. */
export const typedText = (column: string, { emptyIsMissing }: Notation): string =>
  emptyIsMissing ? `nullif(${column}, '')` : column;

/** Characters; a longer value is a text. */
const MAX_TYPED_LENGTH = 64;
/** Digits up to which every number is exactly a double. */
const EXACT_DIGITS = 15;

const INTEGER = ' *(0|-?[1-9][0-9]{0,18}) *';
const DIGITS = ' *[-+]?[0-9]+ *';
const DATE = '[0-9]{4}-[0-9]{2}-[0-9]{2}';
const HOURS = '([01][0-9]|2[0-3]):[0-5][0-9]';
const SECONDS = ':[0-5][0-9](\\.[0-9]{1,6})?';
const TIMESTAMP = `${DATE}[T ]${HOURS}(${SECONDS})?`;
const ZONE = ' ?(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)';

const is = (value: string, pattern: string) => `regexp_full_match(${value}, '${pattern}')`;
/** The pattern of a number, as an SQL string holds it. */
function numberPattern({ decimal, fortran }: Notation): string {
  const point = decimal === '.' ? '\\.' : ',';
  const whole = '(0|[1-9][0-9]*)';
  const plain = `(${whole}(${point}[0-9]*)?|${point}[0-9]+)([eE][-+]?[0-9]+)?`;
  const double = `(${whole}${point}[0-9]*|${point}[0-9]+)[dD][-+]?[0-9]+`;
  return ` *[-+]?(${fortran ? `${plain}|${double}` : plain}) *`;
}

/** An SQL expression for a number as C writes it. */
function asWrittenInC(value: string, { decimal, fortran }: Notation): string {
  const [from, to] = [fortran ? 'dD' : '', fortran ? 'ee' : ''];
  if (decimal === ',') return `translate(${value}, '${from},', '${to}.')`;
  return fortran ? `translate(${value}, '${from}', '${to}')` : value;
}

/** An SQL expression for a time with a zone as DuckDB reads it: with seconds, and no space before the zone. */
const asDuckdbWrites = (value: string) =>
  `left(${value}, 16) || CASE WHEN ${value}[17] = ':' THEN '' ELSE ':00' END || replace(substr(${value}, 17), ' ', '')`;

/** An SQL expression that converts a text to a type that holds it. */
export function castTo(type: SqlType, value: string, notation: Notation): string {
  if (type === 'DOUBLE') return `CAST(${asWrittenInC(value, notation)} AS DOUBLE)`;
  return `CAST(${type === 'TIMESTAMPTZ' ? asDuckdbWrites(value) : value} AS ${type})`;
}

const casts = (value: string, type: SqlType) => `TRY_CAST(${value} AS ${type}) IS NOT NULL`;

/** Nearly all integers are in canonical form, and this takes half the time of the pattern. */
const isCanonicalInteger = (value: string) =>
  `CAST(TRY_CAST(${value} AS BIGINT) AS VARCHAR) = ${value}`;

/**
 * SQL expressions by type, for whether it holds a text (not NULL) without loss. A number is the nearest finite
 * double, and an integer exactly that. Leading zeros make an identifier. Dates are ISO 8601 only, as 01/02/2020 is
 * ambiguous; times have at most microseconds.
 */
const HOLDS: Record<Exclude<SqlType, 'VARCHAR'>, (value: string, notation: Notation) => string> = {
  BOOLEAN: value => `${value} IN ('true', 'false')`,
  BIGINT: value =>
    `CASE WHEN ${isCanonicalInteger(value)} THEN true ELSE ${is(value, INTEGER)} AND ${casts(value, 'BIGINT')} END`,
  DOUBLE: (
    value,
    notation,
  ) => `${is(value, numberPattern(notation))} AND isfinite(TRY_CAST(${asWrittenInC(value, notation)} AS DOUBLE))
    AND (strlen(${value}) <= ${EXACT_DIGITS} OR contains(${value}, '${notation.decimal}') OR NOT ${is(value, DIGITS)}
      OR TRY_CAST(${value} AS HUGEINT) = TRY_CAST(TRY_CAST(${value} AS DOUBLE) AS HUGEINT))`,
  // DuckDB has years before 1 and after 9999, which ISO 8601 writes otherwise.
  DATE: value => `${is(value, DATE)} AND ${value} > '0001' AND ${casts(value, 'DATE')}`,
  TIME: value => is(value, HOURS + SECONDS),
  TIMESTAMP: value =>
    `${is(value, TIMESTAMP)} AND ${value} > '0001' AND ${casts(value, 'TIMESTAMP')}`,
  // A day less at each end: in UTC the year may be another.
  TIMESTAMPTZ:
    value => `${is(value, TIMESTAMP + ZONE)} AND ${value} > '0001-01-02' AND ${value} < '9999-12-31'
    AND ${casts(asDuckdbWrites(value), 'TIMESTAMPTZ')}`,
};

/** An SQL expression for whether the type holds the text exactly; NULL for a missing value or a failed cast. */
export const holds = (type: SqlType, value: string, notation: Notation): string =>
  type === 'VARCHAR'
    ? `${value} IS NOT NULL`
    : `(strlen(${value}) <= ${MAX_TYPED_LENGTH} AND ${HOLDS[type](value, notation)})`;

/** A set of types, as bits in the order of SQL_TYPES. */
export type TypeSet = number;
export const ALL_TYPES: TypeSet = 2 ** SQL_TYPES.length - 1;
export const setOf = (...types: SqlType[]): TypeSet =>
  types.reduce((set, type) => set | (1 << SQL_TYPES.indexOf(type)), 0);

/** The narrowest type of a set; a column without values is of text. */
export function narrowest(set: TypeSet): SqlType {
  if (set === ALL_TYPES) return 'VARCHAR';
  return SQL_TYPES.find((_type, i) => set & (1 << i)) ?? 'VARCHAR';
}

/** The narrowest type that holds all values. Where types were asked for, it is one of those, even if none holds all values. */
export function chooseType(set: TypeSet, asked: TypeSet | undefined): SqlType {
  if (asked === undefined) return narrowest(set);
  return narrowest(set & asked || asked);
}

/** The types of a set, from the narrowest to the widest. */
export const typesIn = (set: TypeSet): SqlType[] => SQL_TYPES.filter((_type, i) => set & (1 << i));

/** SQL expressions by type: each is true for all texts of the type and few others, and cheaper than their pattern. */
const MAY_HOLD: Partial<Record<SqlType, (value: string) => string>> = {
  DATE: value => `${value}[5] = '-'`,
  TIME: value => `${value}[3] = ':'`,
  TIMESTAMP: value => `${value}[5] = '-'`,
  TIMESTAMPTZ: value => `${value}[5] = '-'`,
};

/** An SQL expression for the types that hold a text exactly. */
const typesHolding = (value: string, notation: Notation) =>
  `CASE WHEN ${value} IS NULL THEN ${ALL_TYPES} ELSE ${SQL_TYPES.map((type, i) => {
    const mayHold = MAY_HOLD[type]?.(value) ?? 'true';
    return `CASE WHEN ${mayHold} AND ${holds(type, value, notation)} THEN ${1 << i} ELSE 0 END`;
  }).join(' + ')} END`;

/** Columns in one query, which copies their values of each row into a list. */
const BATCH = 200;

/**
 * For each of these text columns c0, c1, …, the types that hold all its values exactly. Unpivots them into one column: with
 * expressions for each column, planning takes longer than the query.
 */
export async function findTypes(
  connection: DuckDBConnection,
  { relation, columns, notation }: { relation: string; columns: number[]; notation: Notation },
): Promise<Map<number, TypeSet>> {
  const sets = new Map<number, TypeSet>();
  for (let from = 0; from < columns.length; from += BATCH) {
    const batch = columns.slice(from, from + BATCH);
    for (const i of batch) sets.set(i, ALL_TYPES);
    const found = await query(
      connection,
      `SELECT i, bit_and(${typesHolding('value', notation)}) AS types
        FROM (SELECT unnest([${batch.join(', ')}]) AS i, unnest([${batch.map(i => typedText(`c${i}`, notation)).join(', ')}]) AS value FROM ${relation})
        GROUP BY i`,
    );
    for (const { i, types } of found) sets.set(Number(i), Number(types));
  }
  return sets;
}

/** Counts the values of each of these columns, by the set of types that hold a value. Missing values are not counted. */
export async function countByTypes(
  connection: DuckDBConnection,
  { relation, columns, notation }: { relation: string; columns: number[]; notation: Notation },
): Promise<Map<number, { types: TypeSet; count: number }[]>> {
  const counts = new Map<number, { types: TypeSet; count: number }[]>();
  for (let from = 0; from < columns.length; from += BATCH) {
    const batch = columns.slice(from, from + BATCH);
    const found = await query(
      connection,
      `SELECT i, ${typesHolding('value', notation)} AS types, count(*) AS n
        FROM (SELECT unnest([${batch.join(', ')}]) AS i, unnest([${batch.map(i => typedText(`c${i}`, notation)).join(', ')}]) AS value FROM ${relation})
        WHERE value IS NOT NULL GROUP BY ALL ORDER BY types`,
    );
    for (const { i, types, n } of found)
      counts.set(Number(i), [
        ...(counts.get(Number(i)) ?? []),
        { types: Number(types), count: Number(n) },
      ]);
  }
  return counts;
}

/** The types that hold each value of the first record. */
export async function findTypesOfFirst(
  connection: DuckDBConnection,
  { first, nulls, notation }: { first: string[]; nulls: string[]; notation: Notation },
): Promise<TypeSet[]> {
  await connection.run('CREATE OR REPLACE TEMP TABLE first (value VARCHAR)');
  const appender = await connection.createAppender('first');
  for (const value of first) {
    if (nulls.includes(value)) appender.appendNull();
    else appender.appendVarchar(value);
    appender.endRow();
  }
  appender.closeSync();
  const rows = await query(
    connection,
    `SELECT ${typesHolding('value', notation)} AS types FROM first`,
  );
  await connection.run('DROP TABLE first');
  return rows.map(row => Number(row.types));
}
