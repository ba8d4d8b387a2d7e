import { z } from 'zod';
import { queryInteger } from './query-integer.ts';

/** The key after which a page begins. PostgreSQL stores no NUL, so no key holds one. */
export const cursorText = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[^\0]*$/, 'must not hold a NUL character');

/** `?limit=&after=` of every list (keyset pagination). */
export const pageQuery = z.strictObject({
  limit: queryInteger({ min: 1, max: 1_000, default: 100 }),
  after: cursorText(200).optional(),
});

/** The answer of every list; `next` is the `after` of the next page, null at the end. */
export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item), next: z.string().nullable() });

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

/** Bytes of text, as stored, that one page may hold: in JSON a control character is six times as long. */
const MAX_PAGE_BYTES = 4 << 20;

/** How many of the first rows, given their sizes in bytes, fit into one page, and their total; at least one row if any. */
export function limitPageBytes(sizes: number[]): { count: number; bytes: number } {
  let bytes = 0;
  for (const [count, size] of sizes.entries()) {
    if (count > 0 && bytes + size > MAX_PAGE_BYTES) return { count, bytes };
    bytes += size;
  }
  return { count: sizes.length, bytes };
}
