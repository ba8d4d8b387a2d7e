import { closeSync, openSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { ARRAY_TYPES, type ArrayType, formatNpyHeader } from '../../../shared/arrays/npy-header.ts';
import type { Bound, ColumnStatistics } from '../../../shared/database/schema.ts';
import type { MadeFile } from '../table/protocol.ts';
import { floatReader, integerReader } from './fields.ts';
import { type Box, writeAt, writeBox } from './write-box.ts';

interface Values {
  path: string;
  descr: ArrayType;
  shape: number[];
  unit?: string;
  /** Little-endian, whole values: pieces in C order, or boxes in any order. */
  pieces: AsyncIterable<Buffer> | Iterable<Buffer | Box>;
  onBytes?(bytes: number): void;
}

/** Stores an array as a NumPy file, with its least and greatest value. */
export async function makeArray({
  path,
  descr,
  shape,
  unit,
  pieces,
  onBytes,
}: Values): Promise<MadeFile> {
  const { size, type } = ARRAY_TYPES[descr];
  const header = formatNpyHeader(descr, shape);
  const start = header.length;
  const range = new Range(descr);
  let bytes = 0;
  const file = openSync(path, 'wx', 0o600);
  try {
    writeAt(file, header, 0);
    for await (const piece of pieces) {
      const values = Buffer.isBuffer(piece) ? piece : piece.bytes;
      range.add(values);
      if (Buffer.isBuffer(piece)) writeAt(file, piece, start + bytes);
      else writeBox(file, piece, { shape, size, start });
      bytes += values.length;
      onBytes?.(bytes);
      // Reading and writing do not wait: else nobody would notice that the worker has died.
      await setImmediate();
    }
  } finally {
    closeSync(file);
  }
  const values = bytes / size;
  const column: ColumnStatistics = { name: '', type, ...range.read(), nulls: 0 };
  return {
    name: '',
    kind: 'array',
    path,
    rows: values,
    columns: [unit ? { ...column, unit } : column],
  };
}

/** The least and the greatest of values; NaN and the infinities are passed over. */
class Range {
  readonly #descr: ArrayType;
  readonly #value: (bytes: Buffer, at: number) => number | bigint;
  #min: number | bigint | undefined;
  #max: number | bigint | undefined;

  constructor(descr: ArrayType) {
    this.#descr = descr;
    const { size, type } = ARRAY_TYPES[descr];
    if (type === 'number') this.#value = floatReader(size, false);
    else this.#value = integerReader(type === 'boolean' ? 'u1' : descr.slice(1), false);
  }

  add(bytes: Buffer): void {
    const { size, type } = ARRAY_TYPES[this.#descr];
    let [min, max] = [this.#min, this.#max];
    for (let at = 0; at < bytes.length; at += size) {
      const value = this.#value(bytes, at);
      if (type === 'number' && !Number.isFinite(value)) continue;
      if (min === undefined || value < min) min = value;
      if (max === undefined || value > max) max = value;
    }
    [this.#min, this.#max] = [min, max];
  }

  /** The least and the greatest value: integers as texts, as of columns. */
  read(): { min: Bound; max: Bound } {
    const { type } = ARRAY_TYPES[this.#descr];
    const write = (value: number | bigint | undefined) => {
      if (value === undefined) return null;
      if (type === 'boolean') return Boolean(value);
      return type === 'integer' ? String(value) : Number(value);
    };
    return { min: write(this.#min), max: write(this.#max) };
  }
}
