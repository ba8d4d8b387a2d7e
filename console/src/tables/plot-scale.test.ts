import { describe, expect, test } from 'vitest';
import { drawSeries, nearestFilled, scaleOf, type Value } from './plot-scale.ts';

const column = (type: 'integer' | 'number' | 'timestamp' | 'time' | 'date', more = {}) => ({
  name: 'a',
  type,
  min: 0,
  max: 1,
  nulls: 0,
  ...more,
});
const series = (min: Value[], max: Value[]) => ({
  x: 'x',
  y: 'y',
  buckets: {
    from: min.map((_, n) => n),
    to: min.map((_, n) => n + 1),
    min,
    max,
    count: min.map(value => (value === null ? 0 : 1)),
  },
});

describe('the scale of a column', () => {
  test('tells times apart, with and without a zone', () => {
    const { toNumber } = scaleOf(column('timestamp', { min: '2026-05-01T00:00:00' }));
    expect(toNumber('2026-05-01T00:00:01')).toBe(toNumber('2026-05-01T00:00:01Z'));
    expect(toNumber('2026-05-01T00:00:01.250Z')).toBe(1_250_000);
    expect(toNumber('2026-05-01 02:00:00.5+02:00')).toBe(500_000);
    expect(toNumber('Infinity')).toBeNaN();
    expect(scaleOf(column('time', { min: '00:00:00' })).toNumber('00:00:02')).toBe(2_000_000);
    expect(scaleOf(column('date', { min: '1970-01-01' })).toNumber('1970-01-02')).toBe(86_400e6);
  });

  test.each([
    ['timestamp', '9998-05-01T00:00:00'],
    ['timestamp', '0001-05-01T00:00:00'],
    ['time', '23:59:59'],
  ] as const)('tells a %s near %s to the microsecond', (type, second) => {
    const scale = scaleOf(column(type, { min: second }));
    const times = ['.000001', '.000002', '.000999', '.001'].map(rest => `${second}${rest}`);
    expect(times.map(scale.toNumber)).toEqual([1, 2, 999, 1_000]);
    const [low = '', middle = '', , high = ''] = times;
    const { least, greatest, line } = drawSeries(
      series([middle, low, middle], [middle, low, high]),
      scale,
    );
    expect([least, greatest]).toEqual([low, high]);
    expect(line).toBe('M0.5 0.99900L1.5 1.00000L2.5 0.99900L2.5 0.00000');
  });

  test('tells integers past 2^53 apart by their distances', () => {
    const min = '9007199254740993';
    const { toNumber, format } = scaleOf(column('integer', { exact: true, min }));
    expect(toNumber('9007199254740994')).toBe(1);
    expect(format('9007199254740994')).toBe('9007199254740994');
  });
});

test('the ends of an axis are rounded, and what is told of a place is not', () => {
  const { format, round } = scaleOf(column('number'));
  expect([format(80_334.33333), round(80_334.33333)]).toEqual(['80,334.33333', '80,334.3']);
  expect([format(1.234567891e-27), round(1.234567891e-27)]).toEqual([
    '1.234567891e-27',
    '1.23457e-27',
  ]);
  expect(scaleOf(column('date')).round('2026-05-01')).toBe('2026-05-01');
});

describe('a line through buckets', () => {
  const { toNumber, format, round } = scaleOf(column('number'));
  const draw = (min: (number | null)[], max: (number | null)[]) =>
    drawSeries(series(min, max), { toNumber, format, round });

  test('goes through the least and the greatest value of each', () => {
    const { line, least, greatest } = draw([0, 2], [1, 4]);
    expect([least, greatest]).toEqual([0, 4]);
    expect(line).toBe('M0.5 0.75000L0.5 1.00000L1.5 0.50000L1.5 0.00000');
  });

  test('goes on over buckets without a value, and stands in the middle where all are the same', () => {
    expect(draw([1, null, 3], [1, null, 3]).line).toBe('M0.5 1.00000L2.5 0.00000');
    expect(draw([7], [7])).toMatchObject({ line: 'M0.5 0.50000', dots: [{ x: 0.5, y: 0.5 }] });
    expect(draw([], [])).toMatchObject({ line: '', dots: [] });
  });

  test('tells the value that is next', () => {
    const some = series([null, 1, null, null, 2], [null, 1, null, null, 2]);
    expect([0, 1, 2, 3, 4].map(at => nearestFilled(some, at))).toEqual([1, 1, 1, 4, 4]);
    expect(nearestFilled(series([null], [null]), 0)).toBe(0);
  });
});
