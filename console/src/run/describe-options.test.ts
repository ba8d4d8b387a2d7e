import { expect, test } from 'vitest';
import { describeOptions } from './describe-options.ts';

test('options that are set are told, of those that go with it', () => {
  const fields = {
    cwd: 'frames',
    env: 'A=1\n\nB=2',
    stdin: 'x',
    nodes: '1',
    cpus: '4',
    queue: ' ',
  };
  expect(describeOptions(fields, false)).toEqual(['frames', '2 variables', 'standard input']);
  expect(describeOptions(fields, true)).toEqual([
    'frames',
    '2 variables',
    '1 node',
    '4 cores a task',
  ]);
  expect(describeOptions({ cwd: '' }, false)).toEqual([]);
});
