import { expect, test } from 'vitest';
import { SpareSlots } from './spare-slots.ts';

const running = new AbortController().signal;
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));

test('what no job needs is lent, and taken back from who borrowed last', async () => {
  const slots = new SpareSlots(2, running);
  const ended: string[] = [];
  const borrow = (name: string) =>
    slots.borrow(async signal => {
      await untilAborted(signal);
      ended.push(name);
    });
  const [first, second] = [borrow('first'), borrow('second')];
  expect(slots.isFree).toBe(false);
  await borrow('a third has none');
  const over = new AbortController();
  const job = slots.occupy(() => untilAborted(over.signal));
  await second;
  expect(ended).toEqual(['second']);
  const another = slots.occupy(() => untilAborted(over.signal));
  await first;
  expect(ended).toEqual(['second', 'first']);
  over.abort();
  await Promise.all([job, another]);
  expect(slots.isFree).toBe(true);
});

test('a job that finds a free slot ends nothing', async () => {
  const slots = new SpareSlots(2, running);
  let signal: AbortSignal | undefined;
  const over = new AbortController();
  const borrowed = slots.borrow(async given => {
    signal = given;
    await untilAborted(over.signal);
  });
  await slots.occupy(async () => expect(slots.isFree).toBe(false));
  expect(signal?.aborted).toBe(false);
  over.abort();
  await borrowed;
});

test('nothing is lent while no more jobs are taken, and all ends when the worker stops', async () => {
  const stopping = new AbortController();
  const slots = new SpareSlots(1, stopping.signal);
  slots.isDraining = true;
  expect(slots.isFree).toBe(false);
  slots.isDraining = false;
  const borrowed = slots.borrow(untilAborted);
  stopping.abort();
  await borrowed;
});
