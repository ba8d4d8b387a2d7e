import type { WindlassError } from '../../shared/errors/errors.ts';
import { invalidInput } from '../http/validate.ts';

/** The part of one dimension: the indexes from `from` to before `to`. */
export interface Extent {
  from: number;
  to: number;
  /** One index alone, whose dimension is not in the answer. */
  isIndex: boolean;
}

const PART = /^(?:(\d{1,15})|(\d{1,15})?:(\d{1,15})?)$/;

/** Parses a slice such as `0:10,5`: for each dimension an index or a range, as in NumPy; those that are left out are whole. */
export function parseSlice(text: string | undefined, shape: number[]): Extent[] {
  const parts = text === undefined || text === '' ? [] : text.split(',');
  if (parts.length > shape.length) throw invalidSlice(`it names ${parts.length} dimensions`, shape);
  return shape.map((length, d) => {
    const part = (parts[d] ?? ':').trim();
    const found = PART.exec(part);
    if (!found)
      throw invalidSlice(
        `"${part.slice(0, 50)}" is neither an index nor a range such as 0:10`,
        shape,
      );
    const [, index, from = 0, to = length] = found;
    if (index !== undefined) {
      if (Number(index) >= length)
        throw invalidSlice(`the index ${index} is not below ${length}`, shape);
      return { from: Number(index), to: Number(index) + 1, isIndex: true };
    }
    // As in NumPy, a range may go beyond the end.
    const end = Math.min(length, Number(to));
    return { from: Math.min(end, Number(from)), to: end, isIndex: false };
  });
}

export function invalidSlice(reason: string, shape: number[]): WindlassError {
  const problem = `must fit the shape [${shape.join(', ')}]: ${reason}`;
  return invalidInput(
    [{ field: 'slice', problem }],
    'Give an index or from:to for each dimension, separated by commas.',
  );
}

/** Values that lie side by side in C order: where they begin in the array, and how many they are. */
export interface Run {
  start: number;
  length: number;
}

/** The runs of a slice, in their order. */
export function* runsOf(extents: Extent[], shape: number[]): Generator<Run> {
  if (extents.some(({ from, to }) => from === to)) return;
  const strides: number[] = [];
  shape.reduceRight((stride, length) => {
    strides.unshift(stride);
    return stride * length;
  }, 1);
  // Whole dimensions at the end are part of one run.
  let inner = extents.length;
  while (inner > 0 && isWhole(extents[inner - 1] as Extent, shape[inner - 1] as number)) inner--;
  const last = Math.max(0, inner - 1);
  const length =
    extents.length === 0 ? 1 : lengthOf(extents[last] as Extent) * (strides[last] as number);
  const index = extents.map(({ from }) => from);
  for (;;) {
    yield { start: index.reduce((sum, at, d) => sum + at * (strides[d] as number), 0), length };
    let d = last - 1;
    for (; d >= 0; d--) {
      if (++(index[d] as number) < (extents[d] as Extent).to) break;
      index[d] = (extents[d] as Extent).from;
    }
    if (d < 0) return;
  }
}

const isWhole = ({ from, to }: Extent, length: number) => from === 0 && to === length;
export const lengthOf = ({ from, to }: Extent) => to - from;
