import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findDescendants } from '../../servers/processes.ts';
import { giveToDecoder } from '../../workers/sandbox/scratch-dir.ts';
import { parseConfined } from '../harness/files/hostile-files.ts';
import { makeTempDir, type TempDir } from '../harness/files/temp-dir.ts';
import { waitFor } from '../harness/wait-for.ts';

let directory: TempDir;
beforeAll(async () => {
  directory = makeTempDir('process');
  await giveToDecoder(directory.path);
});
afterAll(() => directory.remove());

interface Texts {
  columns: number;
  /** Characters of each, of which the first ones differ. */
  length: number;
  rows: number;
}

/** Parses CSV with the memory that a worker gives by default. */
const parse = (csv: string) =>
  parseConfined(directory.path, { parser: 'csv', content: Buffer.from(csv), seconds: 100 });

function makeTexts({ columns, length, rows }: Texts): string {
  const cell = (n: number) => `x${Math.sin(n)}`.padEnd(length, 'abcdefgh');
  const lines = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, i) => cell(row * columns + i)).join(),
  );
  return `${Array.from({ length: columns }, (_, i) => `c${i}`).join()}\n${lines.join('\n')}\n`;
}

test('a table that two threads have no memory for is made by one', {
  timeout: 120_000,
}, async () => {
  const made = await parse(makeTexts({ columns: 100, length: 60, rows: 25_000 }));
  expect(made).toEqual([expect.objectContaining({ rows: 25_000 })]);
});

test('a table of long rows is made', { timeout: 120_000 }, async () => {
  const made = await parse(makeTexts({ columns: 1_000, length: 300, rows: 504 }));
  expect(made).toEqual([expect.objectContaining({ rows: 504 })]);
});

test('a child that is killed while it has half written its files is followed by another', async () => {
  const rows = 2_000_000;
  // Not as DuckDB reads it: a copy is made first.
  const made = parse(`\ufeffa,b\n${'1,2\n'.repeat(rows)}`);
  made.catch(() => {});
  const isBegun = () =>
    readdirSync(directory.path, { recursive: true }).some(name => `${name}`.endsWith('/text.csv'));
  await waitFor(isBegun, { what: 'the copy to be begun' });
  const child = findDescendants([process.pid]).find(({ command }) =>
    command.startsWith('windlass-child-parse'),
  );
  if (!child) throw new Error('There is no table process.');
  process.kill(child.pid, 'SIGKILL');
  expect(await made).toEqual([expect.objectContaining({ rows })]);
});

test('texts that DuckDB cannot count in its memory are counted', { timeout: 120_000 }, async () => {
  const text = (row: number) => `x${Math.sin(row)}`.padEnd(15_000, 'abcdefgh');
  const unique = Array.from({ length: 15_000 }, (_, row) => `${row},${text(row)}`);
  const often = [7, 3, 3].flatMap((times, i) => new Array<string>(times).fill(`${i},${text(i)}`));
  const csv = `id,s\n${[...unique, ...often].join('\n')}\n`;
  const [made] = await parse(csv);
  const { top = [] } = made?.columns?.find(({ name }) => name === 's') ?? {};
  expect(made?.rows).toBe(15_013);
  expect(top.length).toBe(20);
  expect(top.slice(0, 4).map(({ count }) => count)).toEqual([8, 4, 4, 1]);
  expect(top[0]?.value).toBe(text(0).slice(0, 200));
});
