import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { ARRAY_TYPES, type ArrayType, formatNpyHeader } from '../../../shared/arrays/npy-header.ts';
import type { ColumnStatistics } from '../../../shared/database/schema.ts';
import type { MadeFile } from '../table/protocol.ts';
import { floatReader, integerReader } from './fields.ts';

interface Values {
  path: string;
  descr: ArrayType;
  shape: number[];
  unit?: string;
  /** Little-endian, in C order, in pieces that hold whole values. */
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>;
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
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: 1 << 20 });
  const closed = finished(file);
  // Awaited below; a failure meanwhile must not be unhandled.
  closed.catch(() => {});
  file.write(formatNpyHeader(descr, shape));
  const range = new Range(descr);
  let bytes = 0;
  for await (const piece of pieces) {
    range.add(piece);
    bytes += piece.length;
    onBytes?.(bytes);
    if (!file.write(piece)) await Promise.race([once(file, 'drain'), closed]);
  }
  file.end();
  await closed;
  const { size, type } = ARRAY_TYPES[descr];
  const values = bytes / size;
  const column: ColumnStatistics = { name: '', type, ...range.read(), nulls: 0 };
  return {
    ...{ name: '', kind: 'array', path, rows: values },
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

  /** Integers as texts, as of columns. */
  read(): { min: unknown; max: unknown } {
    const { type } = ARRAY_TYPES[this.#descr];
    const write = (value: number | bigint | undefined) => {
      if (value === undefined) return null;
      if (type === 'boolean') return Boolean(value);
      return type === 'integer' ? String(value) : value;
    };
    return { min: write(this.#min), max: write(this.#max) };
  }
}
