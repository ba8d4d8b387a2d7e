import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../../test/harness/files/temp-dir.ts';
import { openDuckdb } from './duckdb.ts';
import { findTop } from './top-values.ts';

const directory = makeTempDir('top-values');
afterAll(() => directory.remove());

test.each([1, 65 << 20])('columns may have the names of the statement (%i bytes)', async bytes => {
  const connection = await openDuckdb(
    { scratch: directory.path, memory: 256 << 20, threads: 1 },
    3,
  );
  await connection.run(
    "CREATE TABLE t AS FROM (VALUES ('a', NULL, 1), ('a', 1, 2), ('b', NULL, 3), (NULL, 5, 4)) AS v(x, value, h)",
  );
  expect(await findTop(connection, { from: 't', column: 'x', cut: 200, bytes })).toEqual([
    { value: 'a', count: 2 },
    { value: 'b', count: 1 },
  ]);
});

test.each([1, 65 << 20])(
  'a value that is longer than is returned says so (%i bytes)',
  async bytes => {
    const connection = await openDuckdb(
      { scratch: directory.path, memory: 256 << 20, threads: 1 },
      1,
    );
    await connection.run(
      "CREATE TABLE long AS FROM (VALUES ('abcde'), ('abcde'), ('abcde'), ('äöüß'), ('äöüß'), ('abcdf')) AS v(x)",
    );
    expect(await findTop(connection, { from: 'long', column: 'x', cut: 4, bytes })).toEqual([
      { value: 'abcd', count: 3, cut: true },
      { value: 'äöüß', count: 2 },
      { value: 'abcd', count: 1, cut: true },
    ]);
  },
);
