import { expect, test } from 'vitest';
import type { HostRow } from '../database/schema.ts';
import { followJumps, hostOf, MAX_JUMPS } from './hops.ts';

const host = (name: string, jump: string | null) => ({ name, jump }) as HostRow;
const hopsTo = (name: string, rows: HostRow[]) => {
  const find = (wanted: string) => rows.find(row => row.name === wanted);
  return followJumps(find(name), find);
};

test('the hops to a host are its jump hosts in the order of their connections, and itself', () => {
  const rows = [host('node', 'inner'), host('inner', 'outer'), host('outer', null)];
  const hops = hopsTo('node', rows);
  expect(hops?.map(({ name }) => name)).toEqual(['outer', 'inner', 'node']);
  expect(hops && hostOf(hops).name).toBe('node');
  expect(hopsTo('outer', rows)?.map(({ name }) => name)).toEqual(['outer']);
});

test('no way has a missing host, leads back or has too many jump hosts', () => {
  expect(hopsTo('node', [])).toBeUndefined();
  expect(hopsTo('node', [host('node', 'gone')])).toBeUndefined();
  expect(hopsTo('node', [host('node', 'node')])).toBeUndefined();
  expect(hopsTo('node', [host('node', 'a'), host('a', 'b'), host('b', 'a')])).toBeUndefined();
  const chain = Array.from({ length: MAX_JUMPS + 2 }, (_, i) =>
    host(`h${i}`, i === 0 ? null : `h${i - 1}`),
  );
  expect(hopsTo(`h${MAX_JUMPS}`, chain)).toHaveLength(MAX_JUMPS + 1);
  expect(hopsTo(`h${MAX_JUMPS + 1}`, chain)).toBeUndefined();
});
