import { expect, test } from 'vitest';
import { formatAge, formatTable, formatUsed } from './table.ts';

test('columns are as wide as their cells, and a line as wide as the terminal', () => {
  const rows = [
    ['1', 'short'],
    ['22222', 'a longer text'],
  ];
  expect(formatTable(['ID', 'WHAT'], rows)).toBe(
    'ID     WHAT\n1      short\n22222  a longer text\n',
  );
  expect(formatTable(['ID', 'WHAT'], rows, 12)).toBe('ID     WHAT\n1      short\n22222  a lo…\n');
});

test('what others wrote moves no cursor, and is counted by characters', () => {
  expect(formatTable(['A', 'B'], [['\x1b[2J\u202e', '😀\n']])).toBe(
    'A      B\n\ufffd[2J\ufffd  😀␊\n',
  );
  expect(formatTable(['A'], [['x\r\ny\tz\0']])).toBe('A\nx␍␊y␉z\ufffd\n');
});

test.each([
  [0, '0s'],
  [59, '59s'],
  [60, '1m'],
  [3_599, '59m'],
  [7_200, '2h'],
  [86_400 * 3, '3d'],
  [-5, '0s'],
])('%d seconds ago is %s', (seconds, text) => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  expect(formatAge(new Date(now - seconds * 1_000).toISOString(), now)).toBe(text);
});

test('a table may have very many rows', () => {
  const text = formatTable(['a', 'b'], Array(200_000).fill(['long', 'x']));
  expect(text.slice(0, 24)).toBe('a     b\nlong  x\nlong  x\n');
});

test('a token was not used before it was made, and within an hour is all that is known', () => {
  const made = '2026-05-01T12:32:00.000Z';
  const used = '2026-05-01T12:00:00.000Z';
  const at = (time: string) => formatUsed(used, made, Date.parse(`2026-05-01T${time}Z`));
  expect(at('12:32:01')).toBe('<1h');
  expect(at('13:02:00')).toBe('30m');
  expect(at('14:32:00')).toBe('2h');
});
