import type { DuckDBConnection } from '@duckdb/node-api';
import type { ColumnStatistics } from '../../../shared/database/schema.ts';
import { query, quoteName, quoteText } from './duckdb.ts';

const TOP_VALUES = 20;
const MAX_CHARACTERS = 200;
/** Values of wide tables are cut shorter, so that the statistics of thousands of columns take a few MB. */
const TOTAL_CHARACTERS = 200_000;
const MIN_CHARACTERS = 16;
/** Columns in one query, whose plan grows with them. */
const BATCH = 200;

const TYPES: Record<string, ColumnStatistics['type']> = {
  BOOLEAN: 'boolean',
  BIGINT: 'integer',
  DOUBLE: 'number',
  DATE: 'date',
  TIME: 'time',
  TIMESTAMP: 'timestamp',
  TIMESTAMPTZ: 'timestamp',
  VARCHAR: 'text',
};

interface Table {
  /** The Parquet file. */
  table: string;
  columns: { name: string; type: string }[];
  onProgress(share: number): void;
}

/**
 * Computes type, minimum, maximum and number of missing values of each column, and the most frequent values of texts.
 * Integers are returned as decimal texts, because JSON numbers lose precision; minimum and maximum of numbers ignore NaN
 * and the infinities; times are ISO 8601.
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
  const statistics: ColumnStatistics[] = [];
  for (let at = 0; at < columns.length; at += BATCH) {
    const batch = columns.slice(at, at + BATCH);
    const parts = batch.map(({ name: column, type }, i) => {
      const value =
        type === 'DOUBLE'
          ? `CASE WHEN isfinite(${quoteName(column)}) THEN ${quoteName(column)} END`
          : quoteName(column);
      return `count(*) - count(${quoteName(column)}) AS n${i}, min(${value}) AS a${i}, max(${value}) AS z${i}`;
    });
    const asJson = batch.map(
      ({ type }, i) =>
        `n${i}, ${toText(`a${i}`, type, cut)} AS a${i}, ${toText(`z${i}`, type, cut)} AS z${i}`,
    );
    const [found = {}] = await query(
      connection,
      `SELECT ${asJson.join(', ')} FROM (SELECT ${parts.join(', ')} FROM ${from})`,
    );
    for (const [i, { name: column, type }] of batch.entries()) {
      const kind = TYPES[type] ?? 'text';
      const read = (value: unknown) =>
        value === null || value === undefined ? null : parse(kind, value);
      statistics.push({
        name: column,
        type: kind,
        min: read(found[`a${i}`]),
        max: read(found[`z${i}`]),
        nulls: Number(found[`n${i}`]),
        ...(kind === 'text' ? { top: await findTop(connection, { from, column, cut }) } : {}),
      });
      onProgress(statistics.length / columns.length);
    }
  }
  return statistics;
}

async function findTop(
  connection: DuckDBConnection,
  { from, column, cut }: { from: string; column: string; cut: number },
): Promise<{ value: string; count: number }[]> {
  const rows = await query(
    connection,
    `SELECT left(value, ${cut}) AS value, n FROM (
       SELECT ${quoteName(column)} AS value, count(*) AS n FROM ${from} WHERE value IS NOT NULL
       GROUP BY ALL ORDER BY n DESC, value LIMIT ${TOP_VALUES})`,
  );
  return rows.map(row => ({ value: String(row.value), count: Number(row.n) }));
}

/** An SQL expression for the value as text: ISO 8601 for times, in which DuckDB's own format differs. */
function toText(value: string, type: string, cut: number): string {
  if (type === 'VARCHAR') return `left(${value}, ${cut})`;
  if (type === 'TIMESTAMP') return `replace(CAST(${value} AS VARCHAR), ' ', 'T')`;
  if (type === 'TIMESTAMPTZ')
    return `replace(CAST(CAST(${value} AS TIMESTAMP) AS VARCHAR), ' ', 'T') || 'Z'`;
  return `CAST(${value} AS VARCHAR)`;
}

function parse(kind: ColumnStatistics['type'], value: unknown): unknown {
  if (kind === 'boolean') return value === 'true';
  if (kind === 'number') return Number(value);
  return String(value);
}
