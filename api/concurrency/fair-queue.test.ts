import { expect, test } from 'vitest';
import { FairQueue } from './fair-queue.ts';

const LIMITS = { atOnce: 2, atOncePerAddress: 1, perAccount: 4, perAddress: 8, inAll: 12 };
const refused = new Error('no place');

/** A queue whose tasks end when they are told to. */
function makeQueue(limits = LIMITS) {
  const queue = new FairQueue(limits, () => refused);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const add = (name: string, address: string, account = name) =>
    queue.run({ address, account }, () => {
      begun.push(name);
      return new Promise<void>(end => ends.set(name, end));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    await settle();
  };
  return { queue, begun, add, end };
}

/** Lets every promise that can settle do so. */
const settle = () => new Promise(resolve => setImmediate(resolve));

test('one address has one turn at a time, and a newcomer is next', async () => {
  const { add, begun, end } = makeQueue();
  for (let n = 0; n < 6; n++) void add(`flood${n}`, 'a');
  void add('other', 'b');
  await settle();
  expect(begun).toEqual(['flood0', 'other']);
  for (let n = 0; n < 2; n++) void add(`more${n}`, 'b');
  void add('newcomer', 'c');
  await end('flood0');
  expect(begun).toEqual(['flood0', 'other', 'newcomer']);
  await end('other');
  expect(begun.slice(3)).toEqual(['flood1']);
});

test('of an address the account comes first that had no turn yet', async () => {
  const { add, begun, end } = makeQueue();
  for (let n = 0; n < 3; n++) void add(`flood${n}`, 'a', 'attacker');
  void add('neighbour', 'a', 'neighbour');
  await settle();
  await end('flood0');
  expect(begun).toEqual(['flood0', 'neighbour']);
});

test('an account, an address and all have so many places, which come free at the end', async () => {
  const { add, end } = makeQueue();
  const first = Array.from({ length: 4 }, (_, n) => add(`one${n}`, `address${n}`, 'one'));
  await expect(add('one4', 'address4', 'one')).rejects.toBe(refused);
  for (let n = 0; n < 8; n++) void add(`two${n}`, `other${n}`);
  await expect(add('three', 'c')).rejects.toBe(refused);
  await settle();
  await end('one0');
  await first[0];
  void add('three', 'c');
  await expect(add('four', 'd')).rejects.toBe(refused);

  const { add: addHere } = makeQueue();
  for (let n = 0; n < 8; n++) void addHere(`five${n}`, 'e');
  await expect(addHere('five8', 'e')).rejects.toBe(refused);
});

test('where all places are taken, who has most gives one up to a newcomer', async () => {
  const { add, begun, end } = makeQueue();
  const one = Array.from({ length: 5 }, (_, n) => add(`one${n}`, 'a'));
  const two = Array.from({ length: 7 }, (_, n) => add(`two${n}`, 'b'));
  await settle();
  void add('newcomer', 'c');
  await expect(two[6]).rejects.toBe(refused);
  await expect(add('two7', 'b')).rejects.toBe(refused);
  await end('one0');
  expect(begun).toEqual(['one0', 'two0', 'newcomer']);
  expect(one).toHaveLength(5);
});

test('what waits for no turn has a place, and gives it back when it fails', async () => {
  const { queue } = makeQueue({ ...LIMITS, perAccount: 1 });
  const party = { address: 'a', account: 'one' };
  const locked = new Error('locked');
  let fail = () => {};
  const looking = queue.hold(
    party,
    () =>
      new Promise((_, reject) => {
        fail = () => reject(locked);
      }),
  );
  await expect(queue.run(party, async () => 'done')).rejects.toBe(refused);
  fail();
  await expect(looking).rejects.toBe(locked);
  expect(await queue.run(party, async () => 'done')).toBe('done');
});

test('a task that fails ends its turn', async () => {
  const { queue } = makeQueue({ ...LIMITS, atOnce: 1 });
  const failed = queue.run({ address: 'a', account: 'one' }, () => Promise.reject(refused));
  const next = queue.run({ address: 'b', account: 'two' }, async () => 'done');
  await expect(failed).rejects.toBe(refused);
  expect(await next).toBe('done');
});
