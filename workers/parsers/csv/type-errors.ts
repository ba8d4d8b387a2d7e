import type { DuckDBConnection } from '@duckdb/node-api';
import { query } from '../table/duckdb.ts';
import { MAX_PROBLEMS, TableError, type TableProblem } from '../table/protocol.ts';
import type { SqlType } from '../table/sql-types.ts';
import { holds, typedText } from './column-types.ts';
import { countLines } from './count-lines.ts';
import type { Guess } from './guess-columns.ts';
import type { CsvTable } from './read-csv.ts';
import { scanRecords } from './scan-records.ts';

/** Columns in one query. */
const BATCH = 250;

const MEANINGS: Record<SqlType, string> = {
  BOOLEAN: '"true" or "false"',
  BIGINT: 'an integer of 64 bits without leading zeros or a plus',
  DOUBLE: 'a finite number that a double holds',
  DATE: 'a date as YYYY-MM-DD',
  TIME: 'a time as HH:MM:SS, with at most six digits after the seconds',
  TIMESTAMP: 'a date and time as YYYY-MM-DDTHH:MM:SS, with at most six digits after the seconds',
  TIMESTAMPTZ:
    'a date and time with its zone, as YYYY-MM-DDTHH:MM:SSZ, with at most six digits after the seconds',
  VARCHAR: 'a text',
};

/** A time that its column would hold if all had a zone. */
const ZONED = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*(Z|[-+]\d\d(:?\d\d)?)$/;
const MIXED = 'has a zone: the times of a column have one all, or none';

interface Table {
  table: CsvTable;
  /** The file as a relation of texts c0, c1, … */
  relation: string;
  final: Guess;
}

interface TypeMismatch {
  record: number;
  column: number;
  value: string;
}

/** Finds the values that their columns' types do not hold: counts all, and lists the first hundred by line. */
export async function findTypeErrors(
  connection: DuckDBConnection,
  { table, relation, final: { columns, notation, hasHeader } }: Table,
): Promise<TableError> {
  const before = (hasHeader ? 0 : 1) - (table.dialect.hasUnits ? 1 : 0);
  const typed = columns.flatMap(({ type }, i) => (type === 'VARCHAR' ? [] : [i]));
  const mismatches: TypeMismatch[] = [];
  let count = 0;
  for (let from = 0; from < typed.length; from += BATCH) {
    const batch = typed.slice(from, from + BATCH);
    const isWrong = (i: number) =>
      `(${typedText(`c${i}`, notation)} IS NOT NULL AND ${holds(columns[i]?.type ?? 'VARCHAR', `c${i}`, notation)} IS NOT TRUE)`;
    const sums = batch.map(i => `count(*) FILTER (WHERE ${isWrong(i)})`).join(' + ');
    const [counted] = await query(connection, `SELECT ${sums} AS n FROM ${relation}`);
    const found = Number(counted?.n ?? 0);
    if (found === 0) continue;
    count += found;
    const values = batch
      .map(i => `CASE WHEN ${isWrong(i)} THEN {'column': ${i}, 'value': left(c${i}, 60)} END`)
      .join(', ');
    // The reader preserves the order of the file, so row_number() counts records.
    const rows = await query(
      connection,
      `SELECT record, mismatch.column AS "column", mismatch.value AS value FROM (
         SELECT record, unnest(list_filter([${values}], lambda it: it IS NOT NULL)) AS mismatch
         FROM (SELECT row_number() OVER () AS record, * FROM ${relation})
       ) LIMIT ${MAX_PROBLEMS}`,
    );
    for (const row of rows)
      mismatches.push({
        record: Number(row.record) - before,
        column: Number(row.column),
        value: String(row.value),
      });
  }
  mismatches.sort((a, b) => a.record - b.record || a.column - b.column);
  const named = mismatches.slice(0, MAX_PROBLEMS);
  const wanted = new Set(named.map(mismatch => mismatch.record));
  const { offsets } = await scanRecords(table.text, table.dialect, { wanted });
  const lines = await countLines(table.text, [...offsets.values()]);
  const problems = named.map(({ record, column, value }): TableProblem => {
    const type = columns[column]?.type ?? 'VARCHAR';
    return {
      row: lines.get(offsets.get(record) ?? -1),
      column: columns[column]?.name,
      reason: `${JSON.stringify(value)} ${type === 'TIMESTAMP' && ZONED.test(value) ? MIXED : `is not ${MEANINGS[type]}`}`,
    };
  });
  return new TableError(
    {
      ...(problems[0] ?? { reason: 'a value is not of its column’s type' }),
      hint: 'Correct the values, name those that stand for a missing one with "nulls", or ask for another type in "types".',
    },
    { problems, count },
  );
}
