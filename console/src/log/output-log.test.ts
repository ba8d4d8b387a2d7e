import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BLOCK_BYTES } from './byte-blocks.ts';
import { FindLines, findInText } from './find-lines.ts';
import type { StreamName } from './merged-lines.ts';
import { type Missing, OutputLog } from './output-log.ts';

const encode = (text: string) => new TextEncoder().encode(text);
const textOf = (log: OutputLog, n: number) =>
  log
    .line(n)
    ?.spans.map(({ text }) => text)
    .join('');
const linesOf = (log: OutputLog) =>
  Array.from({ length: log.lineCount }, (_, n) => [log.line(n)?.stream, textOf(log, n)]);

/** The lines that these chunks make, in the order in which they began; computed from plain strings. */
function expectedLines(chunks: [StreamName, string][]): [StreamName, string][] {
  const lines: [StreamName, string][] = [];
  const open: Partial<Record<StreamName, [StreamName, string]>> = {};
  for (const [stream, text] of chunks)
    for (const character of text) {
      let line = open[stream];
      if (!line) {
        line = [stream, ''];
        open[stream] = line;
        lines.push(line);
      }
      if (character === '\n') delete open[stream];
      else line[1] += character;
    }
  return lines;
}

test('lines of both streams stand in the order in which they began, however they were cut', () => {
  const chunk = fc.tuple(
    fc.constantFrom<StreamName>('stdout', 'stderr'),
    fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\n'), maxLength: 300 }),
  );
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 12 }), chunks => {
      const log = new OutputLog();
      for (const [stream, text] of chunks) log.append(stream, encode(text));
      expect(linesOf(log)).toEqual(expectedLines(chunks));
    }),
  );
});

test('a character whose bytes come apart is one character', () => {
  const log = new OutputLog();
  for (const byte of encode('ä€😀\n')) log.append('stdout', Uint8Array.of(byte));
  expect(linesOf(log)).toEqual([['stdout', 'ä€😀']]);
});

test('colours go on over lines, over marks of the index, and over what came apart', () => {
  const log = new OutputLog();
  const bytes = encode(`\x1b[31m${'red\n'.repeat(200)}\x1b[0mplain\n`);
  for (let at = 0; at < bytes.length; at += 3) log.append('stdout', bytes.subarray(at, at + 3));
  expect(log.line(0)?.spans).toEqual([{ text: 'red', style: { color: 1 } }]);
  expect(log.line(130)?.spans).toEqual([{ text: 'red', style: { color: 1 } }]);
  expect(log.line(200)?.spans).toEqual([{ text: 'plain', style: {} }]);
});

test('of a line that overwrites itself the last state is shown, of a long one the beginning', () => {
  const log = new OutputLog();
  log.append('stdout', encode(' 10 %\r 20 %\rdone\r\n'));
  log.append('stdout', encode(`${' 50 %\r'.repeat(20_000)}100 %\n`));
  log.append('stdout', encode(`${'x'.repeat(100_000)}\n`));
  expect([textOf(log, 0), textOf(log, 1)]).toEqual(['done', '100 %']);
  expect(log.line(2)?.hidden).toBe(100_000 - (16 << 10));
});

test('what is too much is dropped, asked for where it is looked at, and put back', () => {
  const blocks = 12;
  const log = new OutputLog({ keep: 4 * BLOCK_BYTES });
  const line = `${'y'.repeat(63)}\n`;
  const all = encode(line.repeat((blocks * BLOCK_BYTES) / line.length));
  for (let at = 0; at < all.length; at += 100_000)
    log.append('stdout', all.subarray(at, at + 100_000));
  const asked: Missing[] = [];
  log.onMissing = missing => asked.push(missing);
  const last = log.lineCount - 1;
  expect(textOf(log, last)).toBe(line.trim());
  expect(log.line(0)).toBeUndefined();
  expect(asked).toEqual([{ stream: 'stdout', block: 0 }]);
  log.restore({ stream: 'stdout', block: 0 }, all.slice(0, BLOCK_BYTES));
  expect(textOf(log, 0)).toBe(line.trim());
  expect(textOf(log, last)).toBe(line.trim());
});

test('a line of more than is kept is shown by its beginning, and what stands behind it too', () => {
  const log = new OutputLog({ keep: 4 * BLOCK_BYTES });
  const all = encode(
    `first\n${'z'.repeat(20 * BLOCK_BYTES)}\nbehind\n${'w'.repeat(9 * BLOCK_BYTES)}`,
  );
  for (let at = 0; at < all.length; at += 100_000)
    log.append('stdout', all.subarray(at, at + 100_000));
  const asked: number[] = [];
  log.onMissing = ({ stream, block }) => {
    asked.push(block);
    const start = block * BLOCK_BYTES;
    log.restore({ stream, block }, all.slice(start, start + BLOCK_BYTES));
  };
  const look = (n: number) => {
    for (let tries = 0; tries < 5; tries++) {
      const line = log.line(n);
      if (line) return [line.spans[0]?.text.slice(0, 6), line.hidden];
    }
    throw new Error(`line ${n} is not shown after blocks ${asked} came`);
  };
  const shown = 16 << 10;
  expect(look(1)).toEqual(['zzzzzz', 20 * BLOCK_BYTES - shown]);
  expect(look(3)).toEqual(['wwwwww', 9 * BLOCK_BYTES - shown]);
  expect(look(2)).toEqual(['behind', 0]);
  expect(look(0)).toEqual(['first', 0]);
  expect(asked.length).toBeLessThan(8);
});

test('lines that are nearly long are shown, whatever of them was dropped', () => {
  const log = new OutputLog({ keep: 16 * BLOCK_BYTES });
  const all = encode(
    Array.from({ length: 100 }, (_, n) => `${n} ${'v'.repeat(200_000)}\n`).join(''),
  );
  for (let at = 0; at < all.length; at += 100_000)
    log.append('stdout', all.subarray(at, at + 100_000));
  log.onMissing = ({ stream, block }) => {
    const start = block * BLOCK_BYTES;
    log.restore({ stream, block }, all.slice(start, start + BLOCK_BYTES));
  };
  for (let n = 0; n < 4; n++) {
    for (let tries = 0; tries < 10 && !log.line(n); tries++);
    expect(textOf(log, n)?.slice(0, 3)).toBe(`${n} v`);
  }
});

test('a text is found before, behind and in the beginning of a line that is too long to be read', () => {
  const log = new OutputLog();
  log.append('stdout', encode('needle 0\n'.repeat(30)));
  log.append('stdout', encode(`needle ${'z'.repeat(80 << 20)}`));
  log.append('stdout', encode('\nneedle\n'));
  log.isWhole = true;
  log.onMissing = ({ stream, block }) =>
    log.restore({ stream, block }, encode('needle 0\n'.repeat(30_000)).slice(0, BLOCK_BYTES));
  const find = new FindLines(log, 'needle');
  for (let n = 0; n < 10 && !find.isDone; n++) find.step(1_000);
  expect(find.matches).toHaveLength(32);
});

test('a text is found in any case, in lines that come later too, and not in escape sequences', () => {
  const log = new OutputLog();
  const find = new FindLines(log, 'eRR');
  log.append('stdout', encode('fine\n'.repeat(100)));
  log.append('stderr', encode('an \x1b[31merr\x1b[0mor\n'));
  log.append('stdout', encode('terr'));
  find.step(1_000);
  expect(find.matches).toEqual([100]);
  log.append('stdout', encode('a\n'));
  log.isWhole = true;
  find.step(1_000);
  expect(find.matches).toEqual([100, 101]);
  expect(find.isDone).toBe(true);
  expect(findInText('Error, error', 'ERR')).toEqual([
    [0, 3],
    [7, 10],
  ]);
});

test('a text is found in the lines of both streams that end last, wherever they began', () => {
  const log = new OutputLog();
  const find = new FindLines(log, 'needle');
  const print = (stream: StreamName, text: string) => {
    log.append(stream, encode(text));
    find.step(1_000);
    return [find.matches, log.openLines, find.isDone];
  };
  expect(print('stdout', 'a needle\nnee')).toEqual([[0], [1], true]);
  expect(print('stderr', ' 10%|#')).toEqual([[0], [1, 2], true]);
  // What stands behind a progress bar does not wait for its end.
  expect(print('stdout', 'dle\nmore\nneedles\n')).toEqual([[0, 1, 4], [2], true]);
  expect(print('stderr', '\r100%|## needle')).toEqual([[0, 1, 4], [2], true]);
  log.isWhole = true;
  expect(find.isDone).toBe(false);
  find.step(1_000);
  expect([find.matches, log.openLines, find.isDone]).toEqual([[0, 1, 2, 4], [], true]);
});

test('a line has the time of its stream, and a time its first line of any stream', () => {
  const log = new OutputLog();
  const time = (second: number) => Date.parse('2026-11-23T10:00:00Z') + second * 1_000;
  const append = (stream: 'stdout' | 'stderr', text: string, second: number) =>
    log.append(stream, encode(text), new Date(time(second)).toISOString());
  append('stdout', 'a\nb', 0);
  append('stdout', 'b\nc\n', 5);
  // Where much is caught up with, one stream is told after the other.
  append('stderr', 'x\ny\n', 3);
  append('stdout', 'd\n', 9);
  const lines = Array.from({ length: log.lineCount }, (_, n) => log.timeOf(n));
  expect(lines).toEqual([0, 0, 5, 3, 3, 9].map(time));
  expect([0, 1, 3, 5, 6, 9].map(second => log.lineAt(time(second)))).toEqual([0, 2, 2, 2, 5, 5]);
  expect(log.lineAt(time(10))).toBe(undefined);
  const older = new OutputLog();
  older.append('stdout', encode('a\n'));
  expect([older.timeOf(0), older.lineAt(time(0))]).toEqual([undefined, undefined]);
});

test('a million lines take up little beside their bytes, and each is found at once', () => {
  const log = new OutputLog();
  const chunk = encode('0123456789 the quick brown fox\n'.repeat(10_000));
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 100; n++) log.append('stdout', chunk);
  expect(log.lineCount).toBe(1_000_000);
  const more = process.memoryUsage().arrayBuffers - before - 100 * chunk.length;
  expect(more).toBeLessThan(4 << 20);
  const began = performance.now();
  for (let n = 0; n < 100; n++) expect(textOf(log, n * 10_000)).toContain('fox');
  expect(performance.now() - began).toBeLessThan(1_000);
});
