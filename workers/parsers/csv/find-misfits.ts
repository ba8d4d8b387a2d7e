import type { DuckDBConnection } from '@duckdb/node-api';
import { query } from '../table/duckdb.ts';
import {
  MAX_PROBLEMS,
  TableError,
  type TableProblem,
  type TableRequest,
} from '../table/protocol.ts';
import { countLines } from './count-lines.ts';
import type { Dialect } from './dialect.ts';
import type { Column, SqlType } from './guess-types.ts';
import { scanRecords } from './scan-records.ts';

/** Columns of one query. */
const BATCH = 250;

const MEANINGS: Record<SqlType, string> = {
  BOOLEAN: 'true or false',
  BIGINT: 'an integer of 64 bits',
  DOUBLE: 'a number',
  DATE: 'a date as YYYY-MM-DD',
  TIME: 'a time as HH:MM:SS',
  TIMESTAMP: 'a date and time as YYYY-MM-DD HH:MM:SS',
  TIMESTAMPTZ: 'a date and time with its zone, as YYYY-MM-DD HH:MM:SSZ',
  VARCHAR: 'a text',
};

interface Table {
  request: Extract<TableRequest, { kind: 'csv' }>;
  dialect: Dialect;
  hasHeader: boolean;
  columns: Column[];
  /** The file as texts, c0, c1, … */
  relation: string;
}

interface Misfit {
  record: number;
  column: number;
  value: string;
}

/** Names the values that are not of their column's type, the first hundred by line, and counts them all. */
export async function findMisfits(
  connection: DuckDBConnection,
  { request, dialect, hasHeader, columns, relation }: Table,
): Promise<TableError> {
  const typed = columns.flatMap(({ type }, i) => (type === 'VARCHAR' ? [] : [i]));
  const misfits: Misfit[] = [];
  let count = 0;
  for (let from = 0; from < typed.length; from += BATCH) {
    const batch = typed.slice(from, from + BATCH);
    const isWrong = (i: number) =>
      `(c${i} IS NOT NULL AND TRY_CAST(c${i} AS ${columns[i]?.type}) IS NULL)`;
    const sums = batch.map(i => `count(*) FILTER (WHERE ${isWrong(i)})`).join(' + ');
    const [counted] = await query(connection, `SELECT ${sums} AS n FROM ${relation}`);
    const found = Number(counted?.n ?? 0);
    if (found === 0) continue;
    count += found;
    const values = batch
      .map(i => `CASE WHEN ${isWrong(i)} THEN {'column': ${i}, 'value': left(c${i}, 60)} END`)
      .join(', ');
    // Rows are numbered as they come, which is their order in the file.
    const rows = await query(
      connection,
      `SELECT record, misfit.column AS "column", misfit.value AS value FROM (
         SELECT record, unnest(list_filter([${values}], lambda it: it IS NOT NULL)) AS misfit
         FROM (SELECT row_number() OVER () AS record, * FROM ${relation})
       ) LIMIT ${MAX_PROBLEMS}`,
    );
    for (const row of rows)
      misfits.push({
        record: Number(row.record) - (hasHeader ? 0 : 1),
        column: Number(row.column),
        value: String(row.value),
      });
  }
  misfits.sort((a, b) => a.record - b.record || a.column - b.column);
  const named = misfits.slice(0, MAX_PROBLEMS);
  const wanted = new Set(named.map(misfit => misfit.record));
  const { offsets } = await scanRecords(request.input, dialect, { wanted });
  const lines = await countLines(request.input, dialect.lineBreak, [...offsets.values()]);
  const problems = named.map(({ record, column, value }): TableProblem => {
    const type = columns[column]?.type ?? 'VARCHAR';
    return {
      row: lines.get(offsets.get(record) ?? -1),
      column: columns[column]?.name,
      reason: `${JSON.stringify(value)} is not ${MEANINGS[type]}`,
    };
  });
  return new TableError(
    {
      ...(problems[0] ?? { reason: 'a value is not of its column’s type' }),
      hint: 'Correct the values, name those that stand for a missing one with "nulls", or read every column as text with "text": true.',
    },
    { problems, count },
  );
}
