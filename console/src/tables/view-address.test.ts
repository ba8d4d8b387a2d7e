import { describe, expect, test } from 'vitest';
import { describeFilter, directionOf, turnSort } from './view-address.ts';

const names = new Set(['x', '-x', 'y', 'b,c']);
const sorted = (...sort: string[]) => ({ sort, filter: [] });
const of = (name: string) => ({ name, names });

describe('the order of a column', () => {
  test('is that of the service where a name begins with a minus', () => {
    expect(directionOf(sorted('-x'), of('-x'))).toBe('ascending');
    expect(directionOf(sorted('-x'), of('x'))).toBeUndefined();
    expect(directionOf(sorted('--x'), of('-x'))).toBe('descending');
    expect(directionOf(sorted('-y'), of('y'))).toBe('descending');
  });

  test('is that of the service where names stand between commas', () => {
    expect(directionOf(sorted('x,-y'), of('y'))).toBe('descending');
    expect(directionOf(sorted('-b,c'), of('b,c'))).toBe('descending');
    expect(directionOf(sorted('y,-y'), of('y'))).toBe('ascending');
  });

  test('turns up, down and back, but not down where that is the name of another column', () => {
    expect(turnSort(sorted(), of('y'), false)).toEqual(['y']);
    expect(turnSort(sorted('y'), of('y'), false)).toEqual(['-y']);
    expect(turnSort(sorted('-y'), of('y'), false)).toEqual([]);
    expect(turnSort(sorted('x'), of('x'), false)).toEqual([]);
    expect(turnSort(sorted('-x'), of('-x'), false)).toEqual(['--x']);
    expect(turnSort(sorted('-x'), of('x'), false)).toEqual(['x']);
  });

  test('leaves others where several are kept', () => {
    expect(turnSort(sorted('-x', 'y'), of('x'), true)).toEqual(['-x', 'y', 'x']);
    expect(turnSort(sorted('-b,c', 'x,-y'), of('y'), true)).toEqual(['-b,c', 'x']);
  });
});

test('a filter is told of the longest name that an operator follows', () => {
  const columns = ['a', 'a:eq', 'b'];
  const told = (filter: string) => describeFilter(filter, columns);
  expect(told('a:eq:2')).toBe('a = 2');
  expect(told('a:eq:ge:2')).toBe('a:eq ≥ 2');
  expect(told('a:eq:null')).toBe('a:eq is missing');
  expect(told('b:null:false')).toBe('b is there');
  expect(told('b:eq:1:2')).toBe('b = 1:2');
  expect(told('c:eq:1')).toBe('c:eq:1');
});
