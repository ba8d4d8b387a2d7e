import { open, stat } from 'node:fs/promises';
import {
  MAX_NPY_HEADER,
  type NpyHeader,
  NpyHeaderError,
  parseNpyHeader,
} from '../../../shared/arrays/npy-header.ts';
import { inCOrder, storedType } from '../npy/c-order.ts';
import { readFields } from '../npy/fields.ts';
import { makeArray } from '../npy/make-array.ts';
import { makeNpyTable } from '../npy/make-npy-table.ts';
import { type Reader, TableError } from '../table/protocol.ts';

/** Reads what numpy.save() writes: one dimension becomes a table with a column per field, others an array. */
const npy: Reader<'npy'> = async (request, onProgress) => {
  const { input, output } = request;
  const { descr, isFortran, shape, offset } = await readHeader(input);
  const { fields, size } = readFields(descr);
  const count = shape.reduce((product, length) => product * BigInt(length), 1n);
  const bytes = BigInt((await stat(input)).size - offset);
  if (size === 0 || count * BigInt(size) !== bytes)
    throw damaged(
      `it says that there are ${count} values of ${size} bytes, and there are ${bytes} bytes`,
    );
  if (shape.length === 1)
    return [
      await makeNpyTable(request, { fields, size, count: Number(count), offset }, onProgress),
    ];
  const code = typeof descr === 'string' ? descr : '';
  const type = storedType(code);
  if (!type)
    throw new TableError({
      reason: `there are ${shape.length} dimensions of ${code ? `NumPy's type ${code.slice(0, 50)}` : 'records'}`,
      hint: 'Arrays hold numbers and booleans. Save other values in one dimension.',
    });
  const pieces = inCOrder({ path: input, offset, code, shape, isFortran });
  const onBytes = (done: number) => onProgress(done / Number(bytes));
  return [await makeArray({ path: output, descr: type, shape, pieces, onBytes })];
};

export default npy;

async function readHeader(path: string): Promise<NpyHeader> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_NPY_HEADER + 12), 0);
    return parseNpyHeader(buffer.subarray(0, bytesRead));
  } catch (error) {
    throw error instanceof NpyHeaderError ? damaged(error.message) : error;
  } finally {
    await file.close();
  }
}

const damaged = (why: string) =>
  new TableError({
    reason: `the NumPy file is damaged: ${why}`,
    hint: 'Save the array again, and send it again.',
  });
