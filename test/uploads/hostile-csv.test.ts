import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ColumnType } from '../../shared/uploads/parsers.ts';
import { runTableChild } from '../../workers/parsers/table/run-child.ts';
import { giveToDecoder } from '../../workers/sandbox/scratch-dir.ts';
import { makeTempDir, type TempDir } from '../harness/files/temp-dir.ts';

/** `npm run test:faults` sends them at their real size. */
const FULL = process.env.FAULTS === 'full';
const MEMORY = 512 << 20;

let directory: TempDir;
beforeAll(async () => {
  directory = makeTempDir('hostile');
  await giveToDecoder(directory.path);
});
afterAll(() => directory.remove());

/** Pieces of text, each with how often it is repeated. */
type Content = [text: string, times: number][];

const many = (full: number) => (FULL ? full : Math.ceil(full / 10));

interface HostileFile {
  content: Content;
  reason: RegExp;
  types?: Record<string, ColumnType>;
}

const FILES: Record<string, HostileFile> = {
  'one cell of 1 GB': { content: [['y', many(1e9)]], reason: /row is longer/ },
  'one cell of 1 GB further down': {
    content: [
      ['a,b\n', 1],
      ['1,2\n', 10_000],
      ['"', 1],
      ['y', many(1e9)],
      ['",2\n', 1],
    ],
    reason: /row is longer/,
  },
  'a million columns': {
    content: [
      ['c,', 1e6],
      ['c\n', 1],
    ],
    reason: /columns, and at most/,
  },
  'ten thousand open quotes': {
    content: [
      ['a,b\n', 1],
      ['"a,', 10_000],
      ['\n1,2\n', 1_000],
    ],
    reason: /after the end of a quoted value/,
  },
  'nothing but quotes': {
    content: [
      ['a,b\n', 1],
      ['""', many(5e8)],
    ],
    reason: /row is longer/,
  },
  'no line break in 100 MB': { content: [['1,', many(5e7)]], reason: /row is longer/ },
  'rows that are all wrong': {
    content: [
      ['a,b\n', 1],
      ['1,2,3\n', many(2e7)],
    ],
    reason: /found 3/,
  },
  'values that are all wrong': {
    content: [
      ['a,b\n', 1],
      ['1,2\n', 60_000],
      ['x,y\n', many(1e7)],
    ],
    reason: /is not an integer/,
    types: { a: 'integer', b: 'integer' },
  },
};

function write(path: string, content: Content): void {
  const file = openSync(path, 'w');
  for (const [text, times] of content) {
    const block = Math.max(1, Math.floor((1 << 20) / text.length));
    for (let left = times; left > 0; left -= block)
      writeSync(file, text.repeat(Math.min(block, left)));
  }
  closeSync(file);
}

for (const [name, { content, reason, types }] of Object.entries(FILES))
  test(`${name} ends as an error that says so, in bounded memory`, async () => {
    const input = join(directory.path, 'table.csv');
    const output = join(directory.path, 'table.parquet');
    write(input, content);
    const peak = watchPeak();
    const made = runTableChild(
      {
        kind: 'file',
        parser: 'csv',
        scratch: directory.path,
        input,
        output,
        parameters: { types },
        expanded: 1 << 30,
      },
      {
        memory: MEMORY,
        seconds: 60,
        keepFree: 0,
        onProgress: () => {},
        signal: new AbortController().signal,
      },
    );
    await expect(made.finally(peak.stop)).rejects.toMatchObject({
      name: 'TableError',
      message: expect.stringMatching(reason),
    });
    expect(peak.bytes()).toBeLessThan(MEMORY);
    if (existsSync('/proc/self/status')) expect(peak.bytes()).toBeGreaterThan(0);
  });

/** The most memory that the child of this process had at any time, as Linux remembers it. */
function watchPeak(): { bytes(): number; stop(): void } {
  let most = 0;
  const look = () => {
    for (const pid of childrenOf(process.pid)) most = Math.max(most, readPeak(pid));
  };
  const timer = setInterval(look, 10);
  return { bytes: () => most, stop: () => clearInterval(timer) };
}

function childrenOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean);
  } catch {
    return [];
  }
}

function readPeak(pid: string): number {
  try {
    return (
      Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
    );
  } catch {
    return 0;
  }
}
