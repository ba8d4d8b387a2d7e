import { describe, expect, test } from 'vitest';
import { findOptions, type Option } from './find-options.ts';

const OPTIONS: Option[] = ['mainlab', 'Lab', 'cluster', 'lab-2'].map(name => [name, name]);
const find = (typed: string) => findOptions(OPTIONS, typed).map(([value]) => value);

describe('what is chosen from', () => {
  test('has a part that was typed in any case; first what begins with it', () => {
    expect(find('lab')).toEqual(['Lab', 'lab-2', 'mainlab']);
    expect(find(' LAB-')).toEqual(['lab-2']);
    expect(find('nothing')).toEqual([]);
  });

  test('is all of it before anything is typed', () => {
    expect(find('  ')).toEqual(['mainlab', 'Lab', 'cluster', 'lab-2']);
  });
});
