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

const COLUMNS = 100;

/** Different texts of 60 characters. */
function row(n: number): string {
  const cell = (i: number) => `${Math.sin(n * COLUMNS + i)}`.padEnd(60, 'abcdefgh');
  return `${Array.from({ length: COLUMNS }, (_, i) => `x${cell(i)}`).join()}\n`;
}

test('a table that two threads have no memory for is made by one', {
  timeout: 120_000,
}, async () => {
  const rows = 25_000;
  const header = Array.from({ length: COLUMNS }, (_, i) => `c${i}`).join();
  const { made } = await parse(
    `${header}\n${Array.from({ length: rows }, (_, n) => row(n)).join('')}`,
  );
  expect(await made).toEqual([expect.objectContaining({ rows })]);
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
