/** A directory, as the service tells it: arrays side by side. */
export interface Listing {
  path: string;
  names: string[];
  sizes: number[];
  types: ('f' | 'd')[];
  mtimes: string[];
}

export const ORDERS = ['name', 'size', 'time'] as const;
export type Order = (typeof ORDERS)[number];

export interface Entry {
  name: string;
  isFolder: boolean;
  /** Bytes. */
  size: number;
  time: string;
}

/** Positions in a listing: folders first, then in an order; `isDown` turns it around. */
export function sortEntries(listing: Listing, order: Order, isDown: boolean): Uint32Array {
  const { names, sizes, types, mtimes } = listing;
  const ranks = rankNames(names);
  const keys = {
    name: () => ranks,
    size: () => sizes,
    time: () => mtimes.map(time => Date.parse(time)),
  };
  const key = keys[order]();
  const sign = isDown ? -1 : 1;
  const compare = (values: ArrayLike<number>, a: number, b: number) =>
    (values[a] ?? 0) - (values[b] ?? 0);
  return Uint32Array.from(names.keys()).sort(
    (a, b) =>
      Number(types[b] === 'd') - Number(types[a] === 'd') ||
      sign * compare(key, a, b) ||
      sign * compare(ranks, a, b),
  );
}

/** Those of the positions whose names hold a text, whatever its capitals. */
export function findEntries({ names }: Listing, sorted: Uint32Array, find: string): Uint32Array {
  const wanted = find.toLowerCase();
  return sorted.filter(at => (names[at] ?? '').toLowerCase().includes(wanted));
}

const ranked = new WeakMap<string[], Float64Array>();
const natural = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

/** Where each name stands among all, as people sort: `a2` before `a10`. */
function rankNames(names: string[]): Float64Array {
  const known = ranked.get(names);
  if (known) return known;
  const order = Uint32Array.from(names.keys()).sort(comparatorOf(names));
  const ranks = new Float64Array(names.length);
  for (const [rank, at] of order.entries()) ranks[at] = rank;
  ranked.set(names, ranks);
  return ranks;
}

/** Only ASCII is compared by keys: a collator takes three times as long for 100,000 names, and the page freezes. */
function comparatorOf(names: string[]): (a: number, b: number) => number {
  const isAscii = names.every(name => /^[\0-\x7f]*$/.test(name));
  if (!isAscii) return (a, b) => natural.compare(names[a] ?? '', names[b] ?? '');
  const keys = names.map(name =>
    name.toLowerCase().replace(/\d+/g, digits => digits.padStart(16, '0')),
  );
  return (a, b) => {
    const [left = '', right = ''] = [keys[a], keys[b]];
    if (left === right) return a - b;
    return left < right ? -1 : 1;
  };
}

export const entryAt = ({ names, sizes, types, mtimes }: Listing, at: number): Entry => ({
  name: names[at] ?? '',
  isFolder: types[at] === 'd',
  size: sizes[at] ?? 0,
  time: mtimes[at] ?? '',
});

export function findEntry(listing: Listing, name: string | undefined): Entry | undefined {
  const at = name === undefined ? -1 : listing.names.indexOf(name);
  return at < 0 ? undefined : entryAt(listing, at);
}
