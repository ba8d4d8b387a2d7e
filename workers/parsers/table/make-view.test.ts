import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TableFilter } from '../../../shared/jobs/payloads/table-query.ts';
import { makeView } from './make-view.ts';
import { parquetStatement } from './parquet-statement.ts';
import type { ViewRequest } from './protocol.ts';
import { SQL_TYPES } from './sql-types.ts';
import { SLICE } from './write-slices.ts';

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

const VALUES = {
  BOOLEAN: ['true', 'false'],
  BIGINT: ['0', '-9223372036854775808', '9223372036854775807', '-1'],
  DOUBLE: ['-0.0', '1.5', '0.0', 'NaN', '-Infinity', 'Infinity', '5e-324', '-0.0', '-5e-324'],
  DATE: ['1970-01-01', '0001-01-01', '9999-12-31'],
  TIME: ['00:00:00', '23:59:59.999999', '00:00:00.000001'],
  TIMESTAMP: ['1970-01-01 00:00:00', '0001-01-01 00:00:00.000001', '9999-12-31 23:59:59.999999'],
  TIMESTAMPTZ: ['1970-01-01 00:00:00Z', '0001-01-01 00:00:00.000001Z', '9999-12-31 23:59:59Z'],
  VARCHAR: ['', 'é', '\u{10ffff}', 'a much longer text than DuckDB keeps in place', ' ', 'E'],
};

/** How DuckDB sorts the rows: at once, in parts because they are long, or by slices of the columns. */
const SHAPES = [
  { shape: 'at once', rows: 100, sorted: SQL_TYPES, wide: [] },
  {
    shape: 'in parts',
    rows: 600,
    sorted: ['DOUBLE', 'VARCHAR'],
    wide: ['repeat(md5(i::VARCHAR), 1250) AS long'],
  },
  {
    shape: 'by slices',
    rows: 100,
    sorted: SQL_TYPES,
    wide: Array.from({ length: SLICE }, (_, i) => `'-0.0'::DOUBLE AS "wide ${i}"`),
  },
];

async function view(input: string, asked: Partial<ViewRequest>): Promise<string> {
  const output = join(scratch, 'view.parquet');
  const resources = { scratch, memory: 1 << 30, threads: 1 } as const;
  await makeView(
    { ...resources, kind: 'view', input, output, columns: 1, sort: [], filter: [], ...asked },
    () => {},
  );
  return output;
}

test.each(SHAPES)(
  'a view that is sorted $shape has the values of its table, to the bit',
  async ({ rows, sorted, wide }) => {
    const input = join(scratch, 'table.parquet');
    const connection = await (await DuckDBInstance.create()).connect();
    const columns = SQL_TYPES.map(type => {
      const values = VALUES[type].map(value => `'${value}'::${type}`);
      // Each column has a period of its own, and NULL in it.
      return `([${values.join(', ')}, NULL])[1 + i % ${values.length + 1}] AS "${type}"`;
    });
    await connection.run(
      `COPY (SELECT ${['i', ...columns, ...wide].join(', ')} FROM range(${rows}) t(i)) TO '${input}' (FORMAT parquet)`,
    );
    const read = async (file: string) =>
      (await connection.runAndReadAll(`SELECT * FROM '${file}'`)).getRowsJson();
    const source = await read(input);
    for (const column of sorted)
      for (const descending of [false, true]) {
        const found = await read(await view(input, { sort: [{ column, descending }] }));
        const inFile = found.sort(([a], [b]) => Number(a) - Number(b));
        const changed = source.findIndex(
          (row, i) => !row.every((x, n) => Object.is(x, inFile[i]?.[n])),
        );
        expect([column, descending, inFile[changed]]).toEqual([
          column,
          descending,
          source[changed],
        ]);
        expect(inFile).toHaveLength(rows);
      }
  },
);

test('equal zeros of both signs stay in the order of the table', async () => {
  const input = join(scratch, 'table.parquet');
  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run(
    `COPY (SELECT (['-0.0', '1', '0', '-1', '-0.0', 'NaN', '0'])[i]::DOUBLE AS x FROM range(1, 8) t(i))
     TO '${input}' (FORMAT parquet)`,
  );
  const read = async (file: string) =>
    (await connection.runAndReadAll(`SELECT x FROM '${file}'`)).getRowsJson().flat();
  expect(await read(await view(input, { sort: [{ column: 'x', descending: false }] }))).toEqual([
    -1,
    -0,
    0,
    -0,
    0,
    1,
    'NaN',
  ]);
  expect(await read(await view(input, { sort: [{ column: 'x', descending: true }] }))).toEqual([
    'NaN',
    1,
    -0,
    0,
    -0,
    0,
    -1,
  ]);
});

test('a group of the value -0 keeps its sign, whatever its columns are called', async () => {
  const input = join(scratch, 'table.parquet');
  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run(
    `COPY (SELECT x AS "1", -x AS "0" FROM (VALUES ('-0.0'::DOUBLE), (2), (-1), (-1), (NULL)) t(x))
     TO '${input}' (FORMAT parquet)`,
  );
  const groups: ViewRequest['groups'] = {
    by: ['1'],
    aggregates: [{ op: 'count' }, { op: 'min', column: '0' }],
  };
  const found = await connection.runAndReadAll(`SELECT * FROM '${await view(input, { groups })}'`);
  expect(found.getRowsJson()).toEqual([
    [-1, '2', 1],
    [-0, '1', 0],
    [2, '1', -2],
    [null, '1', null],
  ]);
});
