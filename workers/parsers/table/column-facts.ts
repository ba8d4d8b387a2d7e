import type { DuckDBConnection } from '@duckdb/node-api';
import type { ColumnFacts } from '../../../shared/database/schema.ts';
import { name, query, text } from './duckdb.ts';

const TOP = 20;
const MAX_CHARACTERS = 200;
/** The facts of a table with thousands of columns stay some MB: values are cut shorter there. */
const CHARACTERS_OF_ALL = 200_000;
const LEAST_CHARACTERS = 16;
/** Columns of one query: its plan grows with them. */
const BATCH = 200;

const TYPES: Record<string, ColumnFacts['type']> = {
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
 * Type, least and greatest value, missing values of each column, and the commonest values of texts. Integers are
 * decimal texts, which JSON's numbers cannot all be; numbers leave out NaN and the infinities; times are ISO 8601.
 */
export async function findFacts(
  connection: DuckDBConnection,
  { table, columns, onProgress }: Table,
): Promise<ColumnFacts[]> {
  const from = `read_parquet(${text(table)})`;
  const cut = Math.max(
    LEAST_CHARACTERS,
    Math.min(MAX_CHARACTERS, Math.floor(CHARACTERS_OF_ALL / columns.length)),
  );
  const facts: ColumnFacts[] = [];
  for (let at = 0; at < columns.length; at += BATCH) {
    const batch = columns.slice(at, at + BATCH);
    const parts = batch.map(({ name: column, type }, i) => {
      const value =
        type === 'DOUBLE'
          ? `CASE WHEN isfinite(${name(column)}) THEN ${name(column)} END`
          : name(column);
      return `count(*) - count(${name(column)}) AS n${i}, min(${value}) AS a${i}, max(${value}) AS z${i}`;
    });
    const asJson = batch.map(
      ({ type }, i) =>
        `n${i}, ${show(`a${i}`, type, cut)} AS a${i}, ${show(`z${i}`, type, cut)} AS z${i}`,
    );
    const [found = {}] = await query(
      connection,
      `SELECT ${asJson.join(', ')} FROM (SELECT ${parts.join(', ')} FROM ${from})`,
    );
    for (const [i, { name: column, type }] of batch.entries()) {
      const kind = TYPES[type] ?? 'text';
      const read = (value: unknown) =>
        value === null || value === undefined ? null : parse(kind, value);
      facts.push({
        name: column,
        type: kind,
        min: read(found[`a${i}`]),
        max: read(found[`z${i}`]),
        nulls: Number(found[`n${i}`]),
        ...(kind === 'text' ? { top: await findTop(connection, { from, column, cut }) } : {}),
      });
      onProgress(facts.length / columns.length);
    }
  }
  return facts;
}

async function findTop(
  connection: DuckDBConnection,
  { from, column, cut }: { from: string; column: string; cut: number },
): Promise<{ value: string; count: number }[]> {
  const rows = await query(
    connection,
    `SELECT left(value, ${cut}) AS value, n FROM (
       SELECT ${name(column)} AS value, count(*) AS n FROM ${from} WHERE value IS NOT NULL
       GROUP BY ALL ORDER BY n DESC, value LIMIT ${TOP})`,
  );
  return rows.map(row => ({ value: String(row.value), count: Number(row.n) }));
}

/** The value as text, whatever DuckDB's own words for it are. */
function show(value: string, type: string, cut: number): string {
  if (type === 'VARCHAR') return `left(${value}, ${cut})`;
  if (type === 'TIMESTAMP') return `replace(CAST(${value} AS VARCHAR), ' ', 'T')`;
  if (type === 'TIMESTAMPTZ')
    return `replace(CAST(CAST(${value} AS TIMESTAMP) AS VARCHAR), ' ', 'T') || 'Z'`;
  return `CAST(${value} AS VARCHAR)`;
}

function parse(kind: ColumnFacts['type'], value: unknown): unknown {
  if (kind === 'boolean') return value === 'true';
  if (kind === 'number') return Number(value);
  return String(value);
}
