import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDuckdb, query, readParquet } from '../../workers/parsers/table/duckdb.ts';
import type { ViewRequest } from '../../workers/parsers/table/protocol.ts';
import { runTableChild } from '../../workers/parsers/table/run-child.ts';
import { giveToDecoder } from '../../workers/sandbox/scratch-dir.ts';
import { makeTempDir, type TempDir } from '../harness/files/temp-dir.ts';

let directory: TempDir;
let input: string;
let output: string;
let connection: Awaited<ReturnType<typeof openDuckdb>>;
/** What made the table that is there. */
let written = '';
beforeAll(async () => {
  directory = makeTempDir('views');
  await giveToDecoder(directory.path);
  input = join(directory.path, 'table.parquet');
  output = join(directory.path, 'view.parquet');
  const resources = { scratch: directory.path, memory: 2 ** 33, threads: 2 as const };
  connection = await openDuckdb(resources, 1);
});
afterAll(() => directory.remove());

/** Several views are made of the same table. */
async function writeInput(statement: string): Promise<void> {
  if (statement === written) return;
  written = statement;
  await rm(input, { force: true });
  await connection.run(statement);
  await giveToDecoder(input);
}

/** Writes a table as a query makes it, and the view of it that a child makes with the memory it has by default. */
async function makeView(
  select: string,
  {
    columns,
    groupRows,
    ...view
  }: Pick<ViewRequest, 'columns' | 'sort'> & Partial<ViewRequest> & { groupRows: number },
): Promise<number> {
  await rm(output, { force: true });
  await writeInput(
    `COPY (${select}) TO '${input}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE ${groupRows})`,
  );
  const made = await runTableChild(
    { kind: 'view', scratch: directory.path, input, output, columns, filter: [], ...view },
    {
      memory: 512 << 20,
      seconds: 400,
      keepFree: 0,
      onProgress: () => {},
      signal: new AbortController().signal,
    },
  );
  return made.rows;
}

/** The view has the rows of a query, in its order, as far as these columns tell. */
async function expectRows(select: string, columns: string): Promise<void> {
  const numbered = (rows: string) =>
    `SELECT ${columns}, row_number() OVER () AS place FROM (${rows})`;
  const [view, wanted] = [numbered(`FROM ${readParquet(output)}`), numbered(select)];
  expect(
    await query(connection, `SELECT count(*) AS n FROM ((${view}) EXCEPT ALL (${wanted}))`),
  ).toEqual([{ n: '0' }]);
}

/** Texts of 1 to 50 kB, 240 MB in all, of which some are equal in their first 10 kB, and some are missing. */
const LONG = `SELECT i AS id, i % 3 AS few, CASE WHEN i % 50 = 7 THEN NULL ELSE
  repeat(chr(97 + (i % 7)::INT), (i % 5 * 2500)::INT) || md5(i::VARCHAR) || repeat('é', 500 + (i * 7919 % 20000)::INT) END AS s
  FROM range(10000) t(i)`;

test('a table of long texts is sorted, by them and by others', { timeout: 900_000 }, async () => {
  const view = { columns: 3, groupRows: 1_000 };
  for (const [column, order] of [
    ['s', 's DESC NULLS LAST'],
    ['few', 'few DESC'],
  ] as const) {
    const sort = [{ column, descending: true }];
    expect(await makeView(LONG, { ...view, sort })).toBe(10_000);
    await expectRows(
      `SELECT id, few, s FROM ${readParquet(input)} ORDER BY ${order}, id`,
      'id, few, md5(s)',
    );
  }
});

test('a table of long texts is filtered', { timeout: 450_000 }, async () => {
  const filter = [{ column: 'few', op: 'ne', value: '1' } as const];
  expect(await makeView(LONG, { columns: 3, groupRows: 1_000, sort: [], filter })).toBe(6_667);
  await expectRows(
    `SELECT id, few, s FROM ${readParquet(input)} WHERE few <> 1 ORDER BY id`,
    'id, few, md5(s)',
  );
});

test('NaN and the infinities are found where a row group has them', async () => {
  // Of each 1,000 rows: one NaN, and one of each infinity.
  const select = `SELECT CASE i % 1000 WHEN 3 THEN 'NaN'::DOUBLE WHEN 5 THEN 'Infinity'::DOUBLE
    WHEN 7 THEN '-Infinity'::DOUBLE ELSE -1 - i END AS x FROM range(6144) t(i)`;
  for (const [op, value, rows] of [
    ['eq', 'NaN', 7],
    ['ne', 'NaN', 6_137],
    ['eq', 'Infinity', 7],
    ['ne', 'Infinity', 6_137],
    ['eq', '-Infinity', 7],
    ['lt', 'Infinity', 6_130],
    ['gt', '-Infinity', 6_130],
    ['ge', '0', 7],
  ] as const) {
    const filter = [{ column: 'x', op, value }];
    const made = await makeView(select, { columns: 1, groupRows: 2_048, sort: [], filter });
    expect([op, value, made]).toEqual([op, value, rows]);
  }
});

test('texts that begin alike, or are the same, are sorted', { timeout: 450_000 }, async () => {
  const alike = `SELECT i AS id, i % 3 AS few, CASE WHEN i % 3 = 0 THEN repeat('z', 5000 + (i % 4)::INT)
    ELSE repeat('é', 300) || md5((i % 900)::VARCHAR) || repeat('x', (i * 7919 % 30000)::INT % 20000) END AS s
    FROM range(6000) t(i)`;
  const sort = [
    { column: 's', descending: true },
    { column: 'few', descending: false },
  ];
  expect(await makeView(alike, { columns: 3, groupRows: 1_000, sort })).toBe(6_000);
  await expectRows(
    `SELECT id, few, s FROM ${readParquet(input)} ORDER BY s DESC NULLS LAST, few, id`,
    'id, few, md5(s)',
  );
});

test('a table of a thousand columns is sorted', { timeout: 900_000 }, async () => {
  const numbers = Array.from({ length: 999 }, (_, c) => `sin(i * ${c + 1}) AS c${c}`);
  const select = `SELECT CASE WHEN i % 9 = 0 THEN 'NaN'::DOUBLE ELSE i * 7919 % 1000 END AS k, ${numbers.join(', ')} FROM range(40000) t(i)`;
  const sort = [
    { column: 'k', descending: false },
    { column: 'c5', descending: true },
  ];
  expect(await makeView(select, { columns: 1_000, groupRows: 1_000, sort })).toBe(40_000);
  await expectRows(
    `FROM ${readParquet(input)} ORDER BY k, c5 DESC`,
    'k, c0, c5, c31, c32, c500, c998',
  );
});

test('many texts are sorted by few', { timeout: 450_000 }, async () => {
  const texts = Array.from(
    { length: 64 },
    (_, c) => `left(md5((i * ${c + 2})::VARCHAR), 20) AS c${c}`,
  );
  const select = `SELECT md5((i * 7919 % 5)::VARCHAR) AS few, ${texts.join(', ')}, i AS id FROM range(120000) t(i)`;
  const sort = [{ column: 'few', descending: true }];
  expect(await makeView(select, { columns: 66, groupRows: 4_096, sort })).toBe(120_000);
  await expectRows(
    `FROM ${readParquet(input)} ORDER BY few DESC, id`,
    'few, c0, c30, c31, c63, id',
  );
});

test('more groups of long texts than there may be are refused', { timeout: 450_000 }, async () => {
  const select = `SELECT md5(i::VARCHAR) || repeat('é', 1500) AS s FROM range(80000) t(i)`;
  const groups = { by: ['s'], aggregates: [{ op: 'count' as const }] };
  await expect(
    makeView(select, { columns: 1, groupRows: 8_192, sort: [], groups }),
  ).rejects.toThrow('by: there are more than 10000 groups');
});
