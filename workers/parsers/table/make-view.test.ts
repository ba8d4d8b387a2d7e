import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TableFilter } from '../../../shared/jobs/payloads/table-query.ts';
import { makeView } from './make-view.ts';
import { parquetStatement } from './parquet-statement.ts';

const OPS = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const;
/** Each pattern is a table of its own, so that its row group has these values alone. */
const PATTERNS = [
  ['-0.0', '1.5', '0.0'],
  ['-0.0'],
  ['0.0', 'NULL'],
  ['quiet', '1.5', '2.5', 'NaN'],
  ['quiet'],
  ['Infinity', '-Infinity', '1.5', 'quiet'],
];
const ROWS = 60;

let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'make-view-'));
});
afterEach(() => rm(scratch, { recursive: true }));

test.each(PATTERNS)(
  'a filter of doubles finds each that is equal: %s, %s, %s',
  async (...pattern) => {
    // 0/0 on x86-64 is a NaN with the sign, and other bits than DuckDB's own.
    const values = pattern.map(value =>
      value === 'quiet' ? `-('NaN'::DOUBLE)` : value === 'NULL' ? value : `'${value}'::DOUBLE`,
    );
    const input = join(scratch, 'table.parquet');
    const connection = await (await DuckDBInstance.create()).connect();
    const chosen = values.map((value, i) => `WHEN ${i} THEN ${value}`).join(' ');
    // With bloom filters, as tables have that were stored before.
    await connection.run(
      `COPY (SELECT (CASE i % ${values.length} ${chosen} END)::DOUBLE AS x FROM range(${ROWS}) t(i))
     TO '${input}' (FORMAT parquet, WRITE_BLOOM_FILTER true)`,
    );
    const all = Array.from({ length: ROWS }, (_, i) => pattern[i % pattern.length] as string);
    const numbers = all.filter(text => text !== 'NULL').map(Number);
    const wanted: Record<string, number> = {};
    const found: Record<string, number> = {};
    for (const value of ['0', '-0', '1.5', 'NaN', 'Infinity'])
      for (const op of OPS) {
        if (value === 'NaN' && op !== 'eq' && op !== 'ne') continue;
        const passing = numbers.filter(x => passes(x, op, Number(value)));
        wanted[`${op}:${value}`] = passing.length;
        const output = join(scratch, `${op}${value}.parquet`);
        const filter: TableFilter[] = [{ column: 'x', op, value }];
        const resources = { scratch, memory: 1 << 30, threads: 1 } as const;
        const view = await makeView(
          { ...resources, kind: 'view', input, output, columns: 1, sort: [], filter },
          () => {},
        );
        found[`${op}:${value}`] = view.rows;
      }
    expect(found).toEqual(wanted);
  },
);

/** NaN equals NaN, and is neither less nor greater than anything. */
function passes(x: number, op: (typeof OPS)[number], value: number): boolean {
  const isEqual = x === value || (Number.isNaN(x) && Number.isNaN(value));
  switch (op) {
    case 'eq':
      return isEqual;
    case 'ne':
      return !isEqual;
    case 'lt':
      return x < value;
    case 'le':
      return x <= value;
    case 'gt':
      return x > value;
    case 'ge':
      return x >= value;
  }
}

test('a table has no bloom filters, by which other readers would lose equal doubles', async () => {
  const connection = await (await DuckDBInstance.create()).connect();
  const output = join(scratch, 'table.parquet');
  const select = `SELECT CASE WHEN i % 2 = 0 THEN '-0.0'::DOUBLE ELSE 0.0 END AS x FROM range(60) t(i)`;
  await connection.run(parquetStatement({ select, output }, { columns: 1, groupRows: 60 }));
  const found = await connection.runAndReadAll(`SELECT count(*) FROM '${output}' WHERE x = 0`);
  expect(found.getRowsJson()).toEqual([['60']]);
});
