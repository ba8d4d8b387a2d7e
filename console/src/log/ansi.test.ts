import { expect, test } from 'vitest';
import { plainText, readSpans, readStyle } from './ansi.ts';

const ESC = '\x1b';
const encode = (text: string) => new TextEncoder().encode(text);

test('pieces of a line have the colours that were set before them', () => {
  const { spans, style } = readSpans(`a${ESC}[1;31mb${ESC}[22;44mc${ESC}[0md`, {});
  expect(spans).toEqual([
    { text: 'a', style: {} },
    { text: 'b', style: { bold: true, color: 1 } },
    { text: 'c', style: { color: 1, background: 4 } },
    { text: 'd', style: {} },
  ]);
  expect(style).toEqual({});
});

test('256 colours and true colours', () => {
  const colorOf = (codes: string) => readSpans(`${ESC}[${codes}mx`, {}).spans[0]?.style.color;
  expect(colorOf('38;5;9')).toBe(9);
  expect(colorOf('38;5;196')).toBe('#ff0000');
  expect(colorOf('38;5;255')).toBe('#eeeeee');
  expect(colorOf('38;2;1;20;255')).toBe('#0114ff');
  expect(colorOf('92')).toBe(10);
  expect(colorOf('38')).toBeUndefined();
});

test('what a terminal does not show is not shown', () => {
  const text = `${ESC}]0;title\x07one${ESC}[2K${ESC}[?25l two\x08\x00${ESC}(`;
  expect(plainText(text)).toBe('one two(');
  expect(readSpans(`${ESC}[2Kone`, {}).spans).toEqual([{ text: 'one', style: {} }]);
});

test('a sequence that is cut is told, and continued', () => {
  const { style, rest } = readStyle(encode(`a${ESC}[1mb${ESC}[3`), {});
  expect(style).toEqual({ bold: true });
  expect(rest).toEqual(encode(`${ESC}[3`));
  expect(readStyle(encode(`${ESC}[31m`), style)).toEqual({
    style: { bold: true, color: 1 },
    rest: undefined,
  });
  // A lone escape that is followed by text is no beginning of anything.
  expect(readStyle(encode(`${ESC}x${ESC}[4m`), {}).style).toEqual({ underline: true });
});
