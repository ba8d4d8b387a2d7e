import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDuckdb, query, readParquet } from '../../workers/parsers/table/duckdb.ts';
import { runTableChild } from '../../workers/parsers/table/run-child.ts';
import { giveToDecoder } from '../../workers/sandbox/scratch-dir.ts';
import { makeTempDir, type TempDir } from '../harness/files/temp-dir.ts';

let directory: TempDir;
beforeAll(async () => {
  directory = makeTempDir('wide');
  await giveToDecoder(directory.path);
});
afterAll(() => directory.remove());

test('a Parquet file of a thousand columns and one row group is read', {
  timeout: 200_000,
}, async () => {
  const [input, output] = ['upload', 'table.parquet'].map(name => join(directory.path, name)) as [
    string,
    string,
  ];
  const resources = { scratch: directory.path, memory: 2 ** 33, threads: 2 as const };
  const connection = await openDuckdb(resources, 1);
  const columns = Array.from({ length: 1_000 }, (_, c) => `sin(i * ${c + 1}) AS c${c}`);
  await connection.run(
    `COPY (SELECT ${columns.join(', ')} FROM range(50000) t(i)) TO '${input}' (FORMAT parquet, ROW_GROUP_SIZE 50000)`,
  );
  await giveToDecoder(input);
  const [made] = await runTableChild(
    {
      kind: 'file',
      parser: 'parquet',
      parameters: {},
      expanded: 1 << 30,
      scratch: directory.path,
      input,
      output,
    },
    {
      memory: 512 << 20,
      seconds: 100,
      keepFree: 0,
      onProgress: () => {},
      signal: new AbortController().signal,
    },
  );
  expect([made?.rows, made?.columns?.length]).toEqual([50_000, 1_000]);
  const some = (path: string) =>
    `SELECT c0, c31, c32, c500, c999, row_number() OVER () AS place FROM ${readParquet(path)}`;
  expect(
    await query(
      connection,
      `SELECT count(*) AS n FROM ((${some(input)}) EXCEPT ALL (${some(output)}))`,
    ),
  ).toEqual([{ n: '0' }]);
});
