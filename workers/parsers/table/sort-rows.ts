import { rm } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { query, quoteName, quoteText, runLong } from './duckdb.ts';
import { numberRows } from './number-rows.ts';
import { parquetStatement } from './parquet-statement.ts';
import { SLICE, writeSlices } from './write-slices.ts';

/**
 * Bytes of a row. DuckDB sorts any number of short rows with little memory, but holds 60,000 rows of its sorted runs at
 * once: 200 MB of 900 bytes each exceeded LIMIT_PARSE_BYTES.
 */
const SHORT_ROW = 300;
/** Bytes of rows that are sorted at once. They take up to ten times as much memory where texts say the order. */
const PART_BYTES = 16 << 20;
/** Parts that a file is divided into, each by a pass over the file. Larger parts are divided again. */
const MAX_PARTS = 32;
/** Rows for each part, and their bytes in all, that tell where parts begin. */
const SAMPLED_PER_PART = 50;
const SAMPLED_BYTES = 16 << 20;

/** Characters of a text that tell its part, the more where many texts begin alike. */
const BEGINNINGS = [200, 4_000];
/** Bytes of a part that is not divided again, though texts that begin alike made it larger. */
const MAX_PART_BYTES = 40 << 20;

interface Rows {
  /** A Parquet file, in the order of the table. */
  input: string;
  /** SQL condition of the rows that are wanted. */
  where: string;
}

export interface Sorting extends Rows {
  output: string;
  /** DuckDB's, by column. */
  types: Map<string, string>;
  sort: { column: string; descending: boolean }[];
  groupRows: number;
  onProgress(share: number): void;
}

/** Writes the rows in their order; equal ones stay in that of the table. */
export async function writeSorted(connection: DuckDBConnection, sorting: Sorting): Promise<void> {
  const names = [...sorting.types.keys()];
  const { output, groupRows, onProgress } = sorting;
  if (names.length <= SLICE) return sortSlice(connection, { ...sorting, names });
  await writeSlices(connection, {
    names,
    output,
    size: { columns: names.length, groupRows },
    onProgress,
    writeSlice: ({ from, to, ...slice }, onProgress) =>
      sortSlice(connection, { ...sorting, ...slice, names: names.slice(from, to), onProgress }),
  });
}

interface Slice extends Sorting {
  /** The names of some columns. */
  names: string[];
}

async function sortSlice(connection: DuckDBConnection, slice: Slice): Promise<void> {
  const sorter = new Sorter(connection, slice);
  const { input, where } = slice;
  const { rows, bytes } = await sorter.measure({ input, where });
  if (bytes <= PART_BYTES || bytes / rows <= SHORT_ROW) return sorter.writeAtOnce();
  await sorter.writeInParts({ input, where, rows, bytes });
}

interface Part extends Rows {
  rows: number;
  /** Bytes of the values, as they lie in memory. */
  bytes: number;
}

/** Sorts long rows part by part: each has the rows between two keys, and is small enough to be sorted in memory. */
class Sorter {
  readonly #connection: DuckDBConnection;
  readonly #sorting: Slice;
  readonly #columns: string;
  /** The columns of a part that is divided again, with its sort columns, which may be in other slices. */
  readonly #undividedColumns: string;
  /** SQL expression for the bytes of a row. */
  readonly #width: string;
  /** Sorted files, in their order. */
  readonly #sorted: string[] = [];
  #files = 0;
  #done = 0;

  constructor(connection: DuckDBConnection, sorting: Slice) {
    this.#connection = connection;
    this.#sorting = sorting;
    const { names } = sorting;
    this.#columns = names.map(quoteName).join(', ');
    const withOrder = new Set([...names, ...sorting.sort.map(({ column }) => column)]);
    this.#undividedColumns = [...withOrder].map(quoteName).join(', ');
    const texts = names.filter(name => sorting.types.get(name) === 'VARCHAR');
    const lengths = texts.map(name => `coalesce(strlen(${quoteName(name)}), 0)`);
    this.#width = [8 * names.length, ...lengths].join(' + ');
  }

  async measure({ input, where }: Rows): Promise<{ rows: number; bytes: number }> {
    const { source } = this.#number(input);
    const [found] = await query(
      this.#connection,
      `SELECT count(*) AS rows, sum(${this.#width}) AS bytes FROM ${source} WHERE ${where}`,
    );
    return { rows: Number(found?.rows), bytes: Number(found?.bytes ?? 0) };
  }

  writeAtOnce(): Promise<void> {
    const { input, where, output, onProgress } = this.#sorting;
    return this.#write({ select: this.#select({ input, where }, true), output }, onProgress);
  }

  async writeInParts(part: Part): Promise<void> {
    await this.#sortPart(part, 0);
    const files = this.#sorted.map(quoteText).join(', ');
    const { output } = this.#sorting;
    await this.#write({
      select: `SELECT ${this.#columns} FROM read_parquet([${files}])`,
      output,
    });
  }

  async #sortPart(part: Part, depth: number): Promise<void> {
    const { input, bytes, rows } = part;
    const ranges = await this.#divide(part, depth);
    const isSmall = bytes / ranges.length <= PART_BYTES;
    for (const range of ranges) {
      const output = `${this.#sorting.output}.${this.#files++}`;
      await this.#write({ select: this.#select({ input, where: range }, isSmall), output });
      if (isSmall) {
        this.#sorted.push(output);
        this.#done += 1 / ranges.length / MAX_PARTS ** depth;
        this.#sorting.onProgress(this.#done);
        continue;
      }
      const next = { input: output, where: 'true' };
      const extent = await this.measure(next);
      if (extent.rows < rows) {
        if (extent.rows > 0) await this.#sortPart({ ...next, ...extent }, depth + 1);
      } else {
        // One row, or those that no sample divides.
        const whole = `${this.#sorting.output}.${this.#files++}`;
        await this.#write({ select: this.#select(next, true), output: whole });
        this.#sorted.push(whole);
      }
      await rm(output, { force: true });
    }
  }

  /** The conditions of parts with about as many bytes each, in their order. */
  async #divide(part: Part, depth: number): Promise<string[]> {
    const { input, where, bytes } = part;
    const parts = Math.min(MAX_PARTS, Math.ceil(bytes / PART_BYTES));
    if (parts === 1) return [where];
    const bounds = `bounds_${depth}`;
    const { beginnings, whole } = this.#keys(this.#number(input).row);
    let key = whole;
    for (key of [...beginnings, whole]) {
      const largest = await this.#sample(part, { key, parts, bounds });
      if (largest * bytes <= MAX_PART_BYTES) break;
    }
    const found = await query(this.#connection, `SELECT part FROM ${bounds} ORDER BY part`);
    const starts = found
      .slice(1)
      .map(({ part }) => `(SELECT key FROM ${bounds} WHERE part = ${part})`);
    return [...starts, undefined].map((end, i) =>
      [
        where,
        ...(i > 0 ? [`${key} >= ${starts[i - 1]}`] : []),
        ...(end ? [`${key} < ${end}`] : []),
      ].join(' AND '),
    );
  }

  /** Writes where parts begin, by some of the rows, into a table; returns the largest part's share of the bytes; infinite where there is one part. */
  async #sample(
    { input, where, rows, bytes }: Part,
    { key, parts, bounds }: { key: string; parts: number; bounds: string },
  ): Promise<number> {
    const { source, row } = this.#number(input);
    const sampled = Math.min(parts * SAMPLED_PER_PART, SAMPLED_BYTES / (bytes / rows));
    const step = Math.max(1, Math.floor(rows / Math.max(2 * parts, sampled)));
    await this.#connection.run(
      `CREATE OR REPLACE TEMP TABLE ${bounds} AS SELECT part, min(key) AS key, sum(share) AS share FROM (
         SELECT key, width / sum(width) OVER () AS share, floor(${parts} * (sum(width) OVER (ORDER BY key) - width) / sum(width) OVER ()) AS part
         FROM (SELECT ${key} AS key, ${this.#width} AS width FROM ${source}
           WHERE ${where} AND hash(${row}) % ${step} = 0)) GROUP BY part`,
    );
    const [found] = await query(
      this.#connection,
      `SELECT count(*) AS parts, max(share) AS largest FROM ${bounds}`,
    );
    return Number(found?.parts) < 2 ? Number.POSITIVE_INFINITY : Number(found?.largest);
  }

  /**
   * Sort keys: `beginnings` up to a prefix of the first text, which rows may share; `whole`, which is unique. With
   * whole keys as long as the rows, comparing 1,500 of them exceeded LIMIT_PARSE_BYTES once in five times.
   */
  #keys(row: string): { beginnings: string[]; whole: string } {
    const { sort, types } = this.#sorting;
    const key = (parts: [string, boolean][]) =>
      `create_sort_key(${parts.map(([value, descending]) => `${value}, '${direction(descending)}'`).join(', ')})`;
    const columns = sort.map(({ column, descending }): [string, boolean] => [
      quoteName(column),
      descending,
    ]);
    const whole = key([...columns, [quoteName(row), false]]);
    const text = sort.findIndex(({ column }) => types.get(column) === 'VARCHAR');
    const [name, descending] = columns[text] ?? [];
    if (name === undefined || descending === undefined) return { beginnings: [], whole };
    const before = columns.slice(0, text);
    const beginnings = BEGINNINGS.map(length =>
      key([...before, [`left(${name}, ${length})`, descending]]),
    );
    return { beginnings, whole };
  }

  #select({ input, where }: Rows, isSorted: boolean): string {
    const { source, row } = this.#number(input);
    const { sort, types } = this.#sorting;
    const order = sort.map(
      ({ column, descending }) =>
        `${orderOf(quoteName(column), types.get(column))} ${direction(descending)}`,
    );
    if (!isSorted) return `SELECT ${this.#undividedColumns} FROM ${source} WHERE ${where}`;
    return `SELECT ${this.#columns} FROM ${source} WHERE ${where} ORDER BY ${[...order, quoteName(row)].join(', ')}`;
  }

  #number(input: string): { source: string; row: string } {
    return numberRows(input, [...this.#sorting.types.keys()]);
  }

  #write(
    table: { select: string; output: string },
    onProgress: (share: number) => void = () => {},
  ): Promise<void> {
    const { names, groupRows } = this.#sorting;
    const size = { columns: names.length, groupRows };
    return runLong(this.#connection, parquetStatement(table, size), onProgress);
  }
}

/**
 * The expression that a column is sorted by. DuckDB returns a sorted column as its sort keys say it, which have no -0. Of a
 * sum it returns the sum so, and the column as it is.
 */
export const orderOf = (name: string, type: string | undefined): string =>
  type === 'DOUBLE' ? `${name} + 0` : name;

/** Missing values come last in both directions. */
const direction = (descending: boolean) => `${descending ? 'DESC' : 'ASC'} NULLS LAST`;
