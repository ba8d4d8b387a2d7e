import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { findCell, guessDelimiter, readAround } from './around.ts';

const LINES = Array.from({ length: 50_000 }, (_, n) => `${n + 1};ä;x`);
const TEXT = LINES.join('\r\n');
const around = async (bytes: string | Uint8Array<ArrayBuffer>, row: number, encoding?: string) =>
  (await readAround(new Blob([bytes]), row, { encoding })).map(({ number, text }) => [
    number,
    text,
  ]);

describe('the lines around one', () => {
  test('are found in the middle, at the beginning and at the end', async () => {
    const lines = (from: number, to: number) =>
      LINES.slice(from - 1, to).map((text, n) => [from + n, text]);
    expect(await around(TEXT, 40_000)).toEqual(lines(39_998, 40_002));
    expect(await around(TEXT, 1)).toEqual(lines(1, 3));
    expect(await around(TEXT, 50_000)).toEqual(lines(49_998, 50_000));
    expect(await around('', 1)).toEqual([]);
    expect(await around('a\n\nb\n', 2)).toEqual([
      [1, 'a'],
      [2, ''],
      [3, 'b'],
    ]);
  });

  test('are read through gzip, and in the encoding of the file', async () => {
    const packed = new Uint8Array(gzipSync(TEXT));
    expect(await around(packed, 50_000)).toContainEqual([50_000, '50000;ä;x']);
    const wide = new Uint8Array(Buffer.from('\ufeffa\nä\n', 'utf16le'));
    expect(await around(wide, 2)).toEqual([
      [1, 'a'],
      [2, 'ä'],
    ]);
    const latin = new Uint8Array(Buffer.from('ä', 'latin1'));
    expect(await around(latin, 1, 'latin-1')).toEqual([[1, 'ä']]);
  });

  test('a line that is very long is cut', async () => {
    const [[, text = ''] = []] = await around(`${'x'.repeat(1 << 20)}\ny`, 1);
    expect(String(text).length).toBeLessThanOrEqual(2_000);
  });
});

describe('the value of a column in a line', () => {
  const find = (line: string, column: string | number, header = 'a,"b, c",d') => {
    const delimiter = guessDelimiter(header);
    const cell = findCell(line, column, { header, delimiter });
    return cell && line.slice(cell.from, cell.to);
  };
  test.each([
    ['1,2,3', 'b, c', '2'],
    ['"x, y",2,"z ""q"""', 'd', '"z ""q"""'],
    ['1,2', 'd', undefined],
    ['1,2,3', 'e', undefined],
    ['1,2,3', 2, '2'],
  ])('%s: column %s is %s', (line, column, value) => {
    expect(find(line, column)).toBe(value);
  });

  test('stands between the delimiters of the header', () => {
    expect(find('1;2,5;3', 'b', 'a;b;c')).toBe('2,5');
  });
});
