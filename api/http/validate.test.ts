import { expect, test } from 'vitest';
import { z } from 'zod';
import { WindlassError } from '../../shared/errors/errors.ts';
import { queryInteger } from './query-integer.ts';
import { parseInput } from './validate.ts';

const schema = z.strictObject({
  name: z.string(),
  size: z.number().int().optional(),
  inner: z.strictObject({ list: z.array(z.string()) }).optional(),
});

function fieldsOf(input: unknown): unknown {
  try {
    parseInput(input, schema);
    return undefined;
  } catch (error) {
    if (error instanceof WindlassError) return error.extra.fields;
    throw error;
  }
}
const names = (input: unknown) =>
  (fieldsOf(input) as { field: string }[] | undefined)?.map(({ field }) => field);

test('names each wrong or unknown field by its path', () => {
  expect(fieldsOf({ name: 'x', inner: { list: [] } })).toBeUndefined();
  expect(names({})).toEqual(['name']);
  expect(names({ name: 1, size: 1.5 })).toEqual(['name', 'size']);
  expect(names({ name: 'x', inner: { list: ['a', 2], more: 1 }, colour: 1, shape: 2 })).toEqual(
    expect.arrayContaining(['inner.list.1', 'inner.more', 'colour', 'shape']),
  );
  for (const input of [null, [], 'x', 7]) expect(names(input)).toEqual(['body']);
});

test('what is wrong is said in words of ours', () => {
  expect(fieldsOf({})).toEqual([{ field: 'name', problem: 'must be given' }]);
  const limit = z.object({ limit: queryInteger({ min: 1, max: 100, default: 10 }) });
  for (const text of ['1.5', '1e2', '', '0', '101', 'x'])
    expect(() => parseInput({ limit: text }, limit)).toThrow(
      'limit: must be a whole number from 1 to 100.',
    );
  expect(parseInput({}, limit)).toEqual({ limit: 10 });
});

test.each([
  [z.string().min(1), '', 'must not be empty'],
  [z.string().min(8), 'short', 'must have at least 8 characters'],
  [z.string().max(1), 'ab', 'must have at most 1 character'],
  [z.array(z.string()).max(2), ['a', 'b', 'c'], 'must have at most 2 items'],
  [z.number().max(31_536_000), 1e9, 'must be at most 31536000'],
  [z.number().min(0), -1, 'must be at least 0'],
  [z.number().gt(0), 0, 'must be more than 0'],
  [z.number().int(), 1.5, 'must be an integer'],
  [z.number(), 'x', 'must be a number'],
  [z.boolean(), 'x', 'must be true or false'],
  [z.string(), undefined, 'must be given'],
  [z.enum(['a', 'b']), undefined, 'must be given'],
  [z.union([z.string(), z.number()]), undefined, 'must be given'],
  [z.string(), null, 'must be a string'],
  [z.enum(['a', 'b']), 'c', 'must be one of "a", "b"'],
  [z.literal('a'), 'c', 'must be "a"'],
  [z.number().multipleOf(2), 3, 'must be a multiple of 2'],
  [z.string().regex(/^a/, 'must begin with an a'), 'b', 'must begin with an a'],
])('says in words what is wrong: %#', (field, value, problem) => {
  const say = () => parseInput({ field: value }, z.object({ field }));
  expect(say).toThrow(`Invalid parameters: field: ${problem}.`);
});

test('a wrong key is a wrong name, or what its schema says', () => {
  const say = (key: z.ZodString) => () =>
    parseInput({ env: { 'A-B': 'x' } }, z.object({ env: z.record(key, z.string()) }));
  expect(say(z.string().max(2))).toThrow('env.A-B: must have at most 2 characters.');
  expect(say(z.string().regex(/^\w+$/))).toThrow('env.A-B: is not a valid name.');
  expect(say(z.string().regex(/^\w+$/, 'must be a variable'))).toThrow(
    'env.A-B: must be a variable.',
  );
});

test('limits the detail and the list when many fields are wrong', () => {
  const input = {
    name: 'x',
    inner: { list: Array.from({ length: 5_000 }, () => 1) },
  };
  const fields = fieldsOf(input) as unknown[];
  expect(fields).toHaveLength(100);
  expect(() => parseInput(input, schema)).toThrow(/^Invalid parameters: inner\.list\.0: .{0,900}$/);
});
