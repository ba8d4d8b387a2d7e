import { expect, test } from 'vitest';
import { Grouped } from './grouped.ts';

interface Settle {
  resolve(): void;
  reject(error: unknown): void;
}

/** Groups as they were asked for; each is answered by answer() in turn. */
function makeGroups() {
  const groups: number[][] = [];
  const answers: Settle[] = [];
  const run = (items: number[]) => {
    groups.push(items);
    return new Promise<number[]>((resolve, reject) => {
      answers.push({ resolve: () => resolve(items), reject });
    });
  };
  const grouped = new Grouped<number, number>(run, item => String(item));
  const answer = () => answers.shift()?.resolve();
  const fail = (error: unknown) => answers.shift()?.reject(error);
  return { groups, grouped, answer, fail };
}

/** Until what is asked for now is under way. */
const turn = () => new Promise(resolve => setImmediate(resolve));
const serverError = (code: string) =>
  Object.assign(new Error(code), { name: 'PostgresError', code });

test('what is asked for in one turn is one group, and so is what is asked for meanwhile', async () => {
  const { groups, grouped, answer } = makeGroups();
  const first = [1, 2].map(item => grouped.ask(item));
  await turn();
  const second = [grouped.ask(3)];
  await turn();
  const third = [4, 5, 6].map(item => grouped.ask(item));
  await turn();
  expect(groups).toEqual([[1, 2], [3]]);
  answer();
  expect(await Promise.all(first)).toEqual([1, 2]);
  await turn();
  expect(groups).toEqual([[1, 2], [3], [4, 5, 6]]);
  answer();
  answer();
  expect(await Promise.all([...second, ...third])).toEqual([3, 4, 5, 6]);
});

test('a group that the server refuses is done one by one', async () => {
  const { groups, grouped, answer, fail } = makeGroups();
  const asked = Promise.allSettled([1, 2, 3].map(item => grouped.ask(item)));
  await turn();
  fail(serverError('55P03'));
  await turn();
  expect(groups).toEqual([[1, 2, 3], [1], [2], [3]]);
  answer();
  fail(serverError('22P02'));
  answer();
  expect((await asked).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

test('a group without an answer fails as a whole: it may be committed', async () => {
  const { groups, grouped, fail } = makeGroups();
  const asked = Promise.allSettled([1, 2].map(item => grouped.ask(item)));
  await turn();
  fail(serverError('57014'));
  expect((await asked).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(groups).toEqual([[1, 2]]);
});

test('two items of one job are never in one group', async () => {
  const { groups, grouped, answer } = makeGroups();
  const asked = [1, 2, 1, 1].map(item => grouped.ask(item));
  await turn();
  expect(groups).toEqual([[1, 2], [1]]);
  answer();
  await turn();
  expect(groups).toEqual([[1, 2], [1], [1]]);
  answer();
  answer();
  expect(await Promise.all(asked)).toEqual([1, 2, 1, 1]);
});
