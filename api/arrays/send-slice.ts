import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { ARRAY_TYPES } from '../../shared/arrays/npy-header.ts';
import type { ApiContext } from '../context.ts';
import { whileClientStays } from '../http/while-client-stays.ts';
import { isExact } from '../tables/encode-value.ts';
import { writeValues } from './array-values.ts';
import type { StoredArray } from './find-array.ts';
import { type Extent, invalidSlice, lengthOf, type Run, runsOf } from './parse-slice.ts';

const MAX_VALUES = 1_000_000;
/** The bytes from the first value of a slice to its last one are all read. */
const MAX_SPAN_BYTES = 64 << 20;

/** Sends the values of a slice as they are read. Throws `invalid_input` if it is too large. */
export async function sendSlice(
  api: ApiContext,
  res: Response,
  { array, extents }: { array: StoredArray; extents: Extent[] },
): Promise<void> {
  const { artifact, descr, shape, offset, column } = array;
  const { size } = ARRAY_TYPES[descr];
  const count = extents.reduce((product, extent) => product * lengthOf(extent), 1);
  const span = spanOf(extents, shape);
  if (count > MAX_VALUES)
    throw invalidSlice(`it has ${count} values, and at most ${MAX_VALUES} are sent at once`, shape);
  if (span.length * size > MAX_SPAN_BYTES)
    throw invalidSlice(
      `its values lie within ${span.length * size} bytes, and at most ${MAX_SPAN_BYTES} are read at once; narrow the first dimensions`,
      shape,
    );
  const start = offset + span.start * size;
  const range = { start, end: start + span.length * size - 1 };
  await whileClientStays(res, async signal => {
    // Before the answer begins: an error has a status of its own.
    const bytes = count === 0 ? [] : await api.objects.get(artifact.object, { range, signal });
    const kept = extents.filter(({ isIndex }) => !isIndex).map(lengthOf);
    async function* text(): AsyncGenerator<string> {
      yield `{"shape":[${kept.join(',')}],"values":[`;
      yield* writeValues(Readable.from(bytes), {
        descr,
        exact: isExact(column),
        runs: runsOf(extents, shape),
      });
      yield ']}';
    }
    res.type('application/json');
    await pipeline(Readable.from(text()), res);
  });
}

/** The run from the first value of a slice to its last one. */
function spanOf(extents: Extent[], shape: number[]): Run {
  let stride = 1;
  let start = 0;
  let end = 0;
  for (let d = shape.length - 1; d >= 0; d--) {
    const { from, to } = extents[d] as Extent;
    start += from * stride;
    end += (to - 1) * stride;
    stride *= shape[d] as number;
  }
  return { start, length: end - start + 1 };
}
