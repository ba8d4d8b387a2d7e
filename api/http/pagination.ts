import { and, asc, gt, type SQL } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { z } from 'zod';
import { queryInteger } from './query-integer.ts';
import { queryText } from './query-text.ts';

/**
 * `?limit=&after=` of a list (keyset pagination): `after` is the key, of at most `longest` characters, after which a page
 * begins.
 */
export const pageQueryBy = (
  longest: number,
  { max, default: otherwise } = { max: 1_000, default: 100 },
) =>
  z.strictObject({
    limit: queryInteger({ min: 1, max, default: otherwise }),
    after: queryText.max(longest).transform(orAbsent).optional(),
  });
/** An empty `after` is none: clients send it for the first page. */
const orAbsent = (text: string) => (text === '' ? undefined : text);
export const pageQuery = pageQueryBy(200);
type PageQuery = z.output<typeof pageQuery>;

/** The answer of every list, by the name of its schema; `next` is the `after` of the next page, null at the end. */
export const pageOf = <T extends z.ZodType>(name: string, item: T) =>
  z.object({ items: z.array(item), next: z.string().nullable() }).meta({ id: name });

/** One page of a list. The caller reads `limit + 1` rows, so that the last one tells whether a next page exists. */
export function toPage<T>(
  rows: T[],
  limit: number,
  keyOf: (row: T) => string,
): { items: T[]; next: string | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last ? keyOf(last) : null };
}

/** A query without its conditions. */
interface Selection<T> {
  where(which: SQL | undefined): { orderBy(by: SQL): { limit(count: number): PromiseLike<T[]> } };
}

/** Where the texts of a list's rows may be long: their sizes, and what reserves memory for a page of them. */
interface RowSizes {
  sizes: Selection<{ bytes: number }>;
  reserve(bytes: number): Promise<unknown>;
}

/**
 * Reads one page of rows in the order of the unique column `by`, which `view` shows as the member `key`. With `long` a
 * page ends where its texts fill MAX_PAGE_BYTES.
 */
export async function readPage<T, V extends object>(
  select: Selection<T>,
  { limit, after }: PageQuery,
  order: { by: PgColumn; key: keyof V; where?: SQL; long?: RowSizes },
  view: (row: T) => V,
): Promise<{ items: V[]; next: string | null }> {
  const { by, key, where, long } = order;
  const beyond = after === undefined ? undefined : gt(by, after);
  const read = <R>(rows: Selection<R>, count: number) =>
    rows.where(and(where, beyond)).orderBy(asc(by)).limit(count);
  let fitting = limit;
  if (long) {
    const { count, bytes } = limitPageBytes((await read(long.sizes, limit)).map(row => row.bytes));
    await long.reserve(JSON_FACTOR * bytes);
    fitting = count;
  }
  const rows = await read(select, fitting + 1);
  return toPage(rows.map(view), fitting, item => String(item[key]));
}

/** Bytes of text, as stored, that one page may hold: in JSON a control character is six times as long. */
export const MAX_PAGE_BYTES = 4 << 20;
const JSON_FACTOR = 6;

/** How many of the first rows, given their sizes in bytes, fit into one page, and their total; at least one row if any. */
export function limitPageBytes(sizes: number[]): { count: number; bytes: number } {
  let bytes = 0;
  for (const [count, size] of sizes.entries()) {
    if (count > 0 && bytes + size > MAX_PAGE_BYTES) return { count, bytes };
    bytes += size;
  }
  return { count: sizes.length, bytes };
}
