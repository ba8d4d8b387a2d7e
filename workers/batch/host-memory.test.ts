import { expect, test } from 'vitest';
import { HostMemory } from './host-memory.ts';

const job = (id: string, username: string) => ({ id, username, owner: 'ann' });
const rows = [job('1', 'b'), job('2', 'a'), job('3', 'b'), job('4', 'c')];
const whole = { isFull: false };

test('accounts ask the batch system in turns, by name', () => {
  const memory = new HostMemory();
  const asking = ['', 'a ann', 'b ann', 'c ann', 'x ann'].map(
    turn => memory.plan(rows, { ...whole, turn }).asking,
  );
  expect(asking).toEqual(['a ann', 'b ann', 'c ann', 'a ann', 'a ann']);
  expect(memory.turn).toBe('a ann');
});

test('a plan has the jobs of each account together', () => {
  const { accounts } = new HostMemory().plan(rows, { ...whole, turn: '' });
  expect(accounts.map(([name, own]) => [name, ...own.map(({ id }) => id)])).toEqual([
    ['a ann', '2'],
    ['b ann', '1', '3'],
    ['c ann', '4'],
  ]);
});

test('an account that an earlier poll still asks is passed over', () => {
  const memory = new HostMemory();
  memory.underWay.add('b ann');
  const { accounts, asking } = memory.plan(rows, { ...whole, turn: 'a ann' });
  expect([asking, ...accounts.map(([name]) => name)]).toEqual(['c ann', 'a ann', 'c ann']);
});

test('where all accounts are still asked, the turn stays', () => {
  const memory = new HostMemory();
  for (const name of ['a ann', 'b ann', 'c ann']) memory.underWay.add(name);
  expect(memory.plan(rows, { isFull: true, turn: 'b ann' })).toEqual({
    accounts: [],
    asking: 'b ann',
  });
  expect(memory.cursors).toEqual({});
});

test('a full poll moves the cursor of the account that asks, and one that holds all begins anew', () => {
  const memory = new HostMemory();
  memory.plan(rows, { isFull: true, turn: 'a ann' });
  expect(memory.cursors).toEqual({ 'b ann': '3' });
  memory.plan(rows, { isFull: true, turn: 'b ann' });
  expect(memory.cursors).toEqual({ 'b ann': '3', 'c ann': '4' });
  memory.plan(rows, { ...whole, turn: 'c ann' });
  expect(memory.cursors).toEqual({});
});

test('a home that was unreachable is forgotten with the last job of its account', () => {
  const memory = new HostMemory();
  memory.unreachable.set('a ann', 3).set('gone ann', 5);
  memory.plan(rows, { ...whole, turn: '' });
  expect([...memory.unreachable]).toEqual([['a ann', 3]]);
});
