import { describe, expect, test } from 'vitest';
import { toDraft } from './command-draft.ts';

const PLAIN = { cwd: null, env: [], timeout: null, batch: null };

describe('a job as the fields of a new one', () => {
  test('has what was given, and names of variables that want their values again', () => {
    const asked = { ...PLAIN, cwd: '/data', env: ['A', 'B'], timeout: 60 };
    expect(toDraft(asked, 'build')).toEqual({
      name: 'build',
      cwd: '/data',
      env: 'A\nB',
      timeout: '60',
    });
    expect(toDraft({ ...PLAIN }, null)).toEqual({});
  });

  test('of a batch job has its numbers in the units of the form', () => {
    const batch = { nodes: 2, memory: 3 * 2 ** 29, time: 5_400, options: ['--gres=gpu:1', '-H'] };
    expect(toDraft({ ...PLAIN, batch }, null)).toEqual({
      nodes: '2',
      memory: '1.5',
      minutes: '90',
      options: '--gres=gpu:1\n-H',
    });
  });
});
