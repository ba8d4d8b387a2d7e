import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findDescendants } from '../../servers/processes.ts';
import { runTableChild } from '../../workers/parsers/table/run-child.ts';
import { giveToDecoder } from '../../workers/sandbox/scratch-dir.ts';
import { makeTempDir, type TempDir } from '../harness/temp-dir.ts';
import { waitFor } from '../harness/wait-for.ts';

let directory: TempDir;
beforeAll(async () => {
  directory = makeTempDir('repeated');
  await giveToDecoder(directory.path);
});
afterAll(() => directory.remove());

interface Parse {
  scratch: string;
  made: Promise<{ rows?: number; path: string }[]>;
}

/** Parses CSV in the confined child, as a worker does by default. */
async function parse(content: string): Promise<Parse> {
  const scratch = await mkdtemp(join(directory.path, 'parse-'));
  const input = join(scratch, 'upload');
  await writeFile(input, content);
  await giveToDecoder(scratch);
  await giveToDecoder(input);
  const made = runTableChild(
    {
      ...{ kind: 'file', parser: 'csv', parameters: {}, scratch, input, expanded: 1 << 30 },
      output: join(scratch, 'table.parquet'),
    },
    {
      ...{ memory: 512 << 20, seconds: 100, keepFree: 0, onProgress: () => {} },
      signal: new AbortController().signal,
    },
  );
  return { scratch, made };
}

interface Texts {
  columns: number;
  /** Characters of each, of which the first ones differ. */
  length: number;
  rows: number;
}

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
  const { made } = await parse(makeTexts({ columns: 100, length: 60, rows: 25_000 }));
  expect(await made).toEqual([expect.objectContaining({ rows: 25_000 })]);
});

test('a table of long rows is made', { timeout: 120_000 }, async () => {
  const { made } = await parse(makeTexts({ columns: 1_000, length: 300, rows: 504 }));
  expect(await made).toEqual([expect.objectContaining({ rows: 504 })]);
});

test('a child that is killed while it has half written its files is followed by another', async () => {
  const rows = 2_000_000;
  // Not as DuckDB reads it: a copy is made first.
  const { scratch, made } = await parse(`\ufeffa,b\n${'1,2\n'.repeat(rows)}`);
  made.catch(() => {});
  await waitFor(() => existsSync(join(scratch, 'text.csv')), { what: 'the copy to be begun' });
  const [child] = findDescendants([process.pid]).filter(({ command }) =>
    command.startsWith('windlass-child-parse'),
  );
  process.kill(child?.pid ?? 0, 'SIGKILL');
  expect(await made).toEqual([expect.objectContaining({ rows })]);
});
