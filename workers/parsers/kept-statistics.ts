import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { fitStatistics, MAX_TABLE_STATISTICS } from './table/fit-statistics.ts';

const compress = promisify(gzip);
const expand = promisify(gunzip);

/** Bytes of compressed statistics of one upload, which are in memory until its last transaction. */
const MAX_UPLOAD_STATISTICS = 128 << 20;

/** A table's statistics as compressed JSON. */
export interface PackedColumns {
  packed: Buffer;
  /** Bytes of the JSON. */
  bytes: number;
}

export const unpackColumns = async ({ packed }: PackedColumns): Promise<string> =>
  (await expand(packed)).toString();

/** The statistics of an upload's tables: each table may take an equal share of what is left. */
export class KeptStatistics {
  readonly #max: number;
  #kept = 0;

  constructor(max = MAX_UPLOAD_STATISTICS) {
    this.#max = max;
  }

  /** `left`: for how many tables there must be room, this one included. Throws `parse_failed` where there is none. */
  async keep(columns: ColumnStatistics[], left: number): Promise<PackedColumns> {
    const share = Math.max(0, this.#max - this.#kept) / left;
    const fitted = fitStatistics(columns, Math.min(share, MAX_TABLE_STATISTICS));
    const json = Buffer.from(JSON.stringify(fitted));
    const packed = await compress(json, { level: 1 });
    this.#kept += packed.length;
    if (this.#kept > this.#max)
      throw new WindlassError('parse_failed', {
        detail: `the names and bounds of its columns take more than ${this.#max} bytes.`,
        hint: 'Make several uploads, each with fewer files.',
      });
    return { packed, bytes: json.length };
  }
}
