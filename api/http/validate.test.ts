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

test('limits the detail and the list when many fields are wrong', () => {
  const input = {
    name: 'x',
    inner: { list: Array.from({ length: 5_000 }, () => 1) },
  };
  const fields = fieldsOf(input) as unknown[];
  expect(fields).toHaveLength(100);
  expect(() => parseInput(input, schema)).toThrow(/^Invalid parameters: inner\.list\.0: .{0,900}$/);
});
