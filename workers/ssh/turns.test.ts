import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

test('one at a time has its turn, in order, until it leaves; one that is over while it waits holds up nobody', async () => {
  const turns = new Turns();
  const order: string[] = [];
  const place = (name: string) => {
    const turn = turns.of('a');
    return { ...turn, taken: turn.take().then(() => order.push(name)) };
  };
  const first = place('first');
  await first.taken;
  const [second, third, fourth] = [place('second'), place('third'), place('fourth')];
  const other = turns.of('b');
  await other.take();
  third.end();
  await first.take();
  expect(order).toEqual(['first']);
  first.leave();
  await second.taken;
  const again = first.take().then(() => order.push('first again'));
  expect(order).toEqual(['first', 'second']);
  second.end();
  await fourth.taken;
  expect(order).toEqual(['first', 'second', 'third', 'fourth']);
  fourth.end();
  await again;
});
