import { describe, expect, test } from 'vitest';
import { readEnvironment } from './environment.ts';

describe('variables as they are typed', () => {
  test('a line is one, as it stands after the first =', () => {
    expect(readEnvironment('A=1\r\n\n B= x=y \nC=')).toEqual({ A: '1', B: ' x=y ', C: '' });
  });

  test.each([
    ['A=1\nOMP_NUM_THREADS 8', 'Line 2 of the environment has no "=": OMP_NUM_THREADS 8'],
    ['1A=1', 'Line 1 of the environment has no name of a variable: 1A=1'],
    ['=1', 'Line 1 of the environment has no name of a variable: =1'],
    ['A=1\nA=2', 'Line 2 of the environment gives A once more.'],
  ])('%j is told', (text, problem) => {
    expect(() => readEnvironment(text)).toThrow(problem);
  });
});
