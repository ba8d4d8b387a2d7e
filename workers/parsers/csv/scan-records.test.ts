import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../../test/harness/files/temp-dir.ts';
import { countLines } from './count-lines.ts';
import { detectDialect } from './dialect.ts';
import { scanRecords } from './scan-records.ts';

const directory = makeTempDir('scan');
afterAll(() => directory.remove());

const place = (content: string | Buffer) => {
  const path = join(directory.path, 'table.csv');
  writeFileSync(path, content);
  return path;
};

const scan = async (content: string | Buffer) => {
  const path = place(content);
  const dialect = await detectDialect(path, { delimiter: ',', comment: '#' });
  const { records, problems } = await scanRecords(path, dialect);
  const lines = await countLines(
    path,
    problems.map(({ offset }) => offset),
  );
  return { records, problems: problems.map(({ offset, reason }) => [lines.get(offset), reason]) };
};

test('records are counted by RFC 4180', async () => {
  for (const [content, records] of [
    ['a,b\n1,2\n3,4\n', 3],
    ['a,b\r\n1,2\r\n"3\r\n",4', 3],
    ['a,b\r1,2\r3,4', 3],
    ['a,b\n\n1,2\n\n', 2],
    ['a\n1\n\n3\n', 4],
    ['"a""b",","\n"",""""\n', 2],
    ['a,5" b\n', 1],
    ['a,b\n1,2\r\n3,4\n', 3],
    ['a,b\n#,"\r\n1,2\n#', 2],
    ['a,b\n"\n#",2,\n', 2],
    ['a,b\n \t \n1,2\n  ', 2],
    ['a,b\r\n \r\n1,2\r\n\t\r\n', 2],
    ['a\n  \n1\n', 3],
  ] as const)
    expect([content, await scan(content)]).toEqual([content, { records, problems: [] }]);
});

test('problems are reported by line', async () => {
  const cases: [string | Buffer, [number, string][]][] = [
    [
      'a,b\n"1\n",2\n3\n4,5,6\n',
      [
        [4, 'expected 2 values, found 1'],
        [5, 'expected 2 values, found 3'],
      ],
    ],
    ['a,b\n" "\n\u00a0\n', [2, 3].map(line => [line, 'expected 2 values, found 1'])],
    ['a,b\n1,"x"y\n', [[2, 'there is text after the end of a quoted value']]],
    ['a,b\n1, "x"\n', [[2, 'there is a space before a quote']]],
    ['a,b\n1,2\n"3,4\n', [[3, 'a quote is never closed']]],
    ['a,b\r\n1,2\r3,4\r\n', [[2, 'the line ends in CR where the first one ends in CRLF']]],
    ['a,b\n1,2\0\n', [[2, 'there is a NUL character']]],
    [Buffer.from('a\né\n\xe9\n', 'latin1'), [[2, 'there are bytes that are not UTF-8']]],
    [
      Buffer.concat([Buffer.from('a\né\nx'), Buffer.from([0xe2, 0x82])]),
      [[3, 'there are bytes that are not UTF-8']],
    ],
  ];
  for (const [content, problems] of cases)
    expect([content, (await scan(content)).problems]).toEqual([content, problems]);
});

test('characters and records may be split over chunks', async () => {
  const row = `${'€'.repeat(333)},"${'ü\n'.repeat(100)}"\n`;
  const content = `a,b\n${row.repeat(3_000)}`;
  expect(await scan(content)).toEqual({ records: 3_001, problems: [] });
});

test('a line of spaces may be split over chunks, and lines of text too', async () => {
  const spaces = ' \t'.repeat(1 << 19);
  const text = `a,b\r\n1,2\r\n${'-'.repeat((1 << 20) - 5)}\r\n`;
  for (const [content, lines] of [
    [`a,b\n${spaces}\n1,2\n`, []],
    [`a,b\n${spaces.slice(0, -5)}\r\n1,2\n`, []],
    [`a,b\n${spaces}x${spaces.slice(0, 800_000)}\n1,2\n`, [2]],
    [`a,b\nx${spaces}${spaces.slice(0, 900_000)}\n1,2\n`, [2]],
    [text, [3]],
  ] as const)
    expect((await scan(content)).problems.map(([line]) => line)).toEqual(lines);
});

test('a malformed record whose lines are many chunks before its end may have swallowed others', async () => {
  for (const [lines, isFatal] of [
    ['1,2', false],
    ['1,2\n3,4', true],
  ] as const) {
    const before = `a,b\n${'-'.repeat((1 << 20) - 100)},2\n`;
    const path = place(`${before}"${lines}${'-'.repeat(1_200_000)}",5,6\n7,8\n`);
    const found = await scanRecords(path, await detectDialect(path, { delimiter: ',' }));
    expect([lines, found.isFatal, found.problems.length]).toEqual([lines, isFatal, 1]);
  }
});

test('the memory of a scan does not grow with the file', async () => {
  const path = place(Buffer.alloc(32 << 20, `${'-'.repeat(10_000)},2\n`));
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  await scanRecords(path, await detectDialect(path, { delimiter: ',' }), {
    onBytes: () => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    },
  });
  expect(most).toBeLessThan(8 << 20);
});
