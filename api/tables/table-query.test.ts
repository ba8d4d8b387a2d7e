import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { formatDay, formatTime, formatTimestamp } from './encode-value.ts';
import { checkFilterValue } from './filter-value.ts';
import { parseColumns, parseFilter, parseSort, viewId } from './table-query.ts';

const facts = (name: string, type: ColumnStatistics['type']): ColumnStatistics => ({
  name,
  type,
  min: null,
  max: null,
  nulls: 0,
});
const columns = [
  facts('a', 'integer'),
  facts('-a', 'text'),
  facts('b,c', 'text'),
  facts('x', 'text'),
  facts('x:eq', 'number'),
];

test('names may contain commas, signs and colons', () => {
  expect(parseColumns(['x,a', 'b,c'], columns)).toEqual(['x', 'a', 'b,c']);
  expect(parseSort(['-a', '--a', 'b,c', 'x,-x'], columns)).toEqual([
    { column: '-a', descending: false },
    { column: 'b,c', descending: false },
    { column: 'x', descending: false },
  ]);
  expect(parseFilter('x:eq:eq:5', columns)).toEqual([{ column: 'x:eq', op: 'eq', value: '5' }]);
  expect(parseFilter('x:ne:a:b', columns)).toEqual([{ column: 'x', op: 'ne', value: 'a:b' }]);
});

test('a filter is of the longest name that an operator follows', () => {
  expect(parseFilter('x:eq:2', columns)).toEqual([{ column: 'x', op: 'eq', value: '2' }]);
  expect(parseFilter('x:eq:lt', columns)).toEqual([{ column: 'x', op: 'eq', value: 'lt' }]);
  expect(parseFilter('x:eq:', columns)).toEqual([{ column: 'x', op: 'eq', value: '' }]);
  expect(parseFilter('x:eq:null', columns)).toEqual([
    { column: 'x:eq', op: 'null', value: 'true' },
  ]);
  expect(() => parseFilter('x:eq:lt', columns.slice(4))).toThrow('lt needs a value: lt:VALUE');
  expect(() => parseFilter('x:eq:2', columns.slice(4))).toThrow('"2" after "x:eq" must be one of');
});

test('what a filter lacks is told', () => {
  const refusal = (text: string) => {
    try {
      return parseFilter(text, columns);
    } catch (error) {
      return JSON.stringify(error);
    }
  };
  for (const text of ['a > 5', 'none', 'none:5'])
    expect(refusal(text)).toContain('A filter is column:operator:value, such as sky:eq:rain');
  expect(refusal('none:gt:5')).toContain('there is no column');
});

test('a bound between two integers is one of them', () => {
  const most = '9223372036854775807';
  for (const [given, op, value] of [
    ['ge:1.6666666666666667', 'ge', '2'],
    ['gt:1.6666666666666667', 'gt', '1'],
    ['lt:1.5', 'lt', '2'],
    ['le:1.5', 'le', '1'],
    ['ge:-1.5', 'ge', '-1'],
    ['gt:-1.5', 'gt', '-2'],
    ['lt:-.5', 'lt', '0'],
    ['le:-.5', 'le', '-1'],
    ['lt:2.0', 'lt', '2'],
    ['ge:1.5e3', 'ge', '1500'],
    ['le:1e-300', 'le', '0'],
    ['lt:9007199254740993.5', 'lt', '9007199254740994'],
    ['lt:1e30', 'le', most],
    ['ge:1e30', 'gt', most],
    ['le:-1e30', 'lt', '-9223372036854775808'],
    ['gt:-1e30', 'ge', '-9223372036854775808'],
    ['lt:9223372036854775807.5', 'le', most],
    ['eq:007', 'eq', '007'],
  ])
    expect(parseFilter(`a:${given}`, columns)).toEqual([{ column: 'a', op, value }]);
  expect(checkFilterValue('integer', 'eq', '1.5')).toContain('an integer of 64 bits');
  expect(checkFilterValue('integer', 'ge', '')).toContain('a decimal number');
  expect(checkFilterValue('integer', 'ge', 'NaN')).toBeDefined();
});

test('NaN and the infinities are values of numbers', () => {
  for (const value of ['NaN', 'Infinity', '-Infinity'])
    expect(checkFilterValue('number', 'eq', value)).toBeUndefined();
  expect(checkFilterValue('number', 'lt', 'Infinity')).toBeUndefined();
  expect(checkFilterValue('number', 'lt', 'NaN')).toContain('eq and ne only');
  expect(checkFilterValue('number', 'eq', 'nan')).toContain('NaN, Infinity');
});

test('a time in a filter is that of UTC, with or without a zone', () => {
  const times = [facts('t', 'timestamp')];
  for (const [given, value] of [
    ['2020-01-01', '2020-01-01T00:00:00'],
    ['2020-01-01 10:00', '2020-01-01T10:00:00'],
    ['2020-01-01T10:00Z', '2020-01-01T10:00:00'],
    ['2020-01-01T00:00-00:30', '2020-01-01T00:30:00'],
    ['2020-01-01T10:00:00.000001+05:30', '2020-01-01T04:30:00.000001'],
    ['2020-01-01+05:00', '2019-12-31T19:00:00'],
  ])
    expect(parseFilter(`t:eq:${given}`, times)).toEqual([{ column: 't', op: 'eq', value }]);
  expect(parseFilter('t:null:true', times)).toEqual([{ column: 't', op: 'null', value: 'true' }]);
});

test('the order of filters does not matter, that of sort columns does', () => {
  const view = (filter: string[], sort: string) =>
    viewId('object', { filter: parseFilter(filter, columns), sort: parseSort(sort, columns) });
  expect(view(['a:gt:1', 'a:lt:9'], 'a')).toBe(view(['a:lt:9', 'a:gt:1', 'a:lt:9'], 'a'));
  expect(view([], 'a,x')).not.toBe(view([], 'x,a'));
});

test('a view that an earlier release made of equal values, or in an order, is not read', () => {
  const filter = parseFilter('x:eq:eq:0', columns);
  const sort = parseSort('a', columns);
  const groups = { by: ['a'], aggregates: [{ op: 'count' as const }] };
  const earlier = (...parts: unknown[]) =>
    createHash('sha256')
      .update(JSON.stringify(['object', ...parts]))
      .digest('hex');
  expect(viewId('object', { sort: [], filter })).not.toBe(earlier([], filter));
  expect(viewId('object', { sort, filter: [] })).not.toBe(earlier(sort, []));
  expect(viewId('object', { sort, filter })).not.toBe(earlier(sort, filter, 2));
  expect(viewId('object', { sort: [], filter: [], groups })).not.toBe(earlier([], [], [groups]));
});

test('values are checked by the type of the column', () => {
  const right: [ColumnStatistics['type'], string][] = [
    ['integer', '-9223372036854775808'],
    ['number', '1e5'],
    ['date', '2020-02-29'],
    ['time', '23:59:59.5'],
    ['timestamp', '2020-01-01'],
    ['timestamp', '2020-01-01T10:00Z'],
    ['boolean', 'true'],
    ['text', ''],
  ];
  const wrong: [ColumnStatistics['type'], string][] = [
    ['integer', '9223372036854775808'],
    ['integer', '1.5'],
    ['number', '1e999'],
    ['number', 'x'],
    ['date', '2021-02-29'],
    ['time', '24:00:00'],
    ['timestamp', '2020-13-01'],
    ['timestamp', '2020-01-01T10:00:00+99:99'],
    ['timestamp', '9999-12-31T23:00:00-02:00'],
    ['timestamp', '0000-01-01T00:00:00+02:00'],
    ['boolean', '1'],
    ['text', 'a\0'],
  ];
  for (const [type, value] of right)
    expect([type, value, checkFilterValue(type, 'eq', value)]).toEqual([type, value, undefined]);
  for (const [type, value] of wrong)
    expect([type, value, checkFilterValue(type, 'eq', value)]).toEqual([
      type,
      value,
      expect.any(String),
    ]);
  expect(checkFilterValue('boolean', 'lt', 'true')).toMatch(/eq and ne/);
});

test('times are exact, also before 1970', () => {
  expect(formatTimestamp(-1n)).toBe('1969-12-31T23:59:59.999999');
  expect(formatTimestamp(1_577_840_523_123_450n)).toBe('2020-01-01T01:02:03.12345');
  expect(formatTime(86_399_999_999n)).toBe('23:59:59.999999');
  expect(formatDay(-719_162)).toBe('0001-01-01');
});
