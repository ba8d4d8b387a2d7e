import type { DuckDBConnection } from '@duckdb/node-api';
import { query, quoteName, readParquet } from '../table/duckdb.ts';
import { type FileRequest, TableError } from '../table/protocol.ts';
import type { ColumnPlan } from './plan-columns.ts';
import { refuseDamaged } from './refuse-damaged.ts';

/** Columns in one query, whose plan grows with them. */
const BATCH = 100;

interface Check {
  request: FileRequest<'parquet'>;
  planned: ColumnPlan[];
  onProgress(share: number): void;
}

/**
 * The columns with the types that hold all their values, and their size in bytes. Throws TableError if none holds them.
 */
export async function checkValues(
  connection: DuckDBConnection,
  { request: { input, expanded }, planned, onProgress }: Check,
): Promise<{ columns: ColumnPlan[]; bytes: number }> {
  const columns: ColumnPlan[] = [];
  let bytes = 0;
  for (let at = 0; at < planned.length; at += BATCH) {
    const batch = planned.slice(at, at + BATCH);
    const parts = batch.flatMap(({ faults, orText, bytes: length }, i) => [
      `sum(${length}) AS b${i}`,
      ...(orText ? [`bool_and(${orText.unless}) AS t${i}`] : []),
      ...faults.map(({ when }, f) => `bool_or(${when}) AS f${i}_${f}`),
    ]);
    const [found = {}] = await refuseDamaged(
      query(connection, `SELECT ${parts.join(', ')} FROM ${readParquet(input)}`),
      input,
    );
    for (const [i, plan] of batch.entries()) {
      bytes += Number(found[`b${i}`] ?? 0);
      for (const [f, fault] of plan.faults.entries())
        if (found[`f${i}_${f}`] === true) throw await locate(connection, { input, plan, fault });
      const text = found[`t${i}`] === false ? plan.orText : undefined;
      columns.push(text ? { ...plan, type: 'VARCHAR', value: text.value } : plan);
    }
    if (bytes > expanded)
      throw new TableError({
        reason: `the file expands to more than ${expanded} bytes`,
        hint: 'LIMIT_EXPANDED_BYTES sets the limit.',
      });
    onProgress(columns.length / planned.length);
  }
  return { columns, bytes };
}

interface FaultyColumn {
  input: string;
  plan: ColumnPlan;
  fault: ColumnPlan['faults'][number];
}

async function locate(
  connection: DuckDBConnection,
  { input, plan, fault }: FaultyColumn,
): Promise<TableError> {
  // A name that the file's columns do not have.
  const number = quoteName('\u0001 row');
  const rows = `SELECT *, row_number() OVER () AS ${number} FROM ${readParquet(input)}`;
  const [found] = await query(
    connection,
    `SELECT min(${number}) AS row FROM (${rows}) WHERE ${fault.when}`,
  );
  return new TableError({
    row: Number(found?.row),
    column: plan.name,
    reason: fault.reason,
    hint: 'Correct the value, or leave the column out.',
  });
}
