import type { DuckDBConnection } from '@duckdb/node-api';
import type { Bound, ColumnStatistics } from '../../../shared/database/schema.ts';
import type { ColumnType } from '../../../shared/uploads/parsers.ts';
import { query, quoted, quoteName, quoteText, unquoted } from './duckdb.ts';
import { fitStatistics, MAX_TABLE_STATISTICS } from './fit-statistics.ts';
import { type SqlType, TYPE_OF_SQL } from './sql-types.ts';
import { findTop } from './top-values.ts';

const MAX_CHARACTERS = 200;
/** Values of wide tables are cut shorter, so that the statistics of thousands of columns take a few MB. */
const TOTAL_CHARACTERS = 200_000;
const MIN_CHARACTERS = 16;
/** Columns in one query, whose plan grows with them. */
const BATCH = 200;

const kindOf = (type: string): ColumnType =>
  type in TYPE_OF_SQL ? TYPE_OF_SQL[type as SqlType] : 'text';

interface Column {
  name: string;
  type: string;
}

interface Table {
  /** The Parquet file. */
  table: string;
  columns: Column[];
  onProgress(share: number): void;
}

/**
 * The type, minimum, maximum, missing values, and most frequent texts of each column. Integers are decimal texts, as
 * JSON numbers lose precision; minimum and maximum ignore NaN and infinities; times are ISO 8601.
 */
export async function computeColumnStatistics(
  connection: DuckDBConnection,
  { table, columns, onProgress }: Table,
): Promise<ColumnStatistics[]> {
  const from = `read_parquet(${quoteText(table)})`;
  const cut = Math.max(
    MIN_CHARACTERS,
    Math.min(MAX_CHARACTERS, Math.floor(TOTAL_CHARACTERS / columns.length)),
  );
  const ranges = await findRanges(connection, { from, columns, cut });
  const statistics: ColumnStatistics[] = [];
  for (const column of columns) {
    const { name, type } = column;
    const kind = kindOf(type);
    const { min, max, nulls, bytes } = ranges.get(column) ?? NO_RANGE;
    statistics.push({
      name,
      type: kind,
      min: parse(kind, min),
      max: parse(kind, max),
      nulls,
      ...(kind === 'text'
        ? { top: await findTop(connection, { from, column: name, cut, bytes }) }
        : {}),
    });
    onProgress(statistics.length / columns.length);
  }
  return fitStatistics(statistics, MAX_TABLE_STATISTICS);
}

interface Range {
  /** The least and the greatest value, as text. */
  min: unknown;
  max: unknown;
  nulls: number;
  /** Bytes of texts. */
  bytes: number;
}

const NO_RANGE: Range = { min: null, max: null, nulls: 0, bytes: 0 };

interface Ranges {
  from: string;
  columns: Column[];
  cut: number;
}

/**
 * The least and greatest value of each column. DuckDB reads them from the file's footer if a query wants nothing else,
 * and has none of texts there. So texts get a query of their own, and only columns with NaN or infinities at an end are
 * scanned.
 */
async function findRanges(
  connection: DuckDBConnection,
  { from, columns, cut }: Ranges,
): Promise<Map<Column, Range>> {
  const find = (of: Column[], value = ({ name }: Column) => quoteName(name)) =>
    queryRanges(connection, { from, columns: of, cut, value });
  const ranges = await find(columns.filter(column => !isText(column)));
  const endless = [...ranges].flatMap(([column, { min, max }]) =>
    column.type === 'DOUBLE' && [min, max].some(isNotFinite) ? [column] : [],
  );
  const finite = await find(
    endless,
    ({ name }) => `CASE WHEN isfinite(${quoteName(name)}) THEN ${quoteName(name)} END`,
  );
  for (const [column, { min, max }] of finite)
    ranges.set(column, { ...(ranges.get(column) ?? NO_RANGE), min, max });
  return new Map([...ranges, ...(await find(columns.filter(isText)))]);
}

const isText = ({ type }: Column) => type === 'VARCHAR';
const isNotFinite = (text: unknown) => text !== null && !Number.isFinite(Number(text));

async function queryRanges(
  connection: DuckDBConnection,
  { from, columns, cut, value }: Ranges & { value: (column: Column) => string },
): Promise<Map<Column, Range>> {
  const ranges = new Map<Column, Range>();
  for (let at = 0; at < columns.length; at += BATCH) {
    const batch = columns.slice(at, at + BATCH);
    const parts = batch.flatMap((column, i) => {
      const name = quoteName(column.name);
      const [least, greatest] = [
        `min(${value(column)}) AS a${i}`,
        `max(${value(column)}) AS z${i}`,
      ];
      const bytes = isText(column) ? [`sum(strlen(${name})) AS b${i}`] : [];
      return [`count(*) - count(${name}) AS n${i}`, least, greatest, ...bytes];
    });
    const asText = batch.flatMap((column, i) => [
      `n${i}`,
      `${toText(`a${i}`, column.type, cut)} AS a${i}`,
      `${toText(`z${i}`, column.type, cut)} AS z${i}`,
      ...(isText(column) ? [`b${i}`] : []),
    ]);
    const [found = {}] = await query(
      connection,
      `SELECT ${asText.join(', ')} FROM (SELECT ${parts.join(', ')} FROM ${from})`,
    );
    for (const [i, column] of batch.entries())
      ranges.set(column, {
        min: found[`a${i}`],
        max: found[`z${i}`],
        nulls: Number(found[`n${i}`]),
        bytes: Number(found[`b${i}`] ?? 0),
      });
  }
  return ranges;
}

/** An SQL expression for the value as text: ISO 8601 for times, in which DuckDB's own format differs. */
function toText(value: string, type: string, cut: number): string {
  if (type === 'VARCHAR') return quoted(value, cut);
  if (type === 'TIMESTAMP') return `replace(CAST(${value} AS VARCHAR), ' ', 'T')`;
  if (type === 'TIMESTAMPTZ')
    return `replace(CAST(CAST(${value} AS TIMESTAMP) AS VARCHAR), ' ', 'T') || 'Z'`;
  return `CAST(${value} AS VARCHAR)`;
}

function parse(kind: ColumnType, value: unknown): Bound {
  if (value === null || value === undefined) return null;
  if (kind === 'boolean') return value === 'true';
  if (kind === 'number') return Number(value);
  return kind === 'text' ? unquoted(value) : String(value);
}
