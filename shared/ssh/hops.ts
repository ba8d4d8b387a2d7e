import { inArray } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { type HostRow, hosts } from '../database/schema.ts';

/** Jump hosts on the way to a host, at most. */
export const MAX_JUMPS = 4;

/** The entries of the machines on the way to a host, in the order in which they are connected to: the host itself is the last. */
export type Hops = [...HostRow[], HostRow];

/**
 * The hops to each of these hosts. Hosts are left out where an entry on the way is missing, the way is too long, or it
 * leads back. `share` locks all entries until the end of the transaction.
 */
export async function readHops(
  db: Tx,
  names: string[],
  lock?: 'share',
): Promise<Map<string, Hops>> {
  const read = new Map<string, HostRow>();
  let wanted = [...new Set(names)];
  for (let round = 0; wanted.length > 0 && round <= MAX_JUMPS; round++) {
    const query = db.select().from(hosts).where(inArray(hosts.name, wanted));
    const rows = await (lock ? query.for(lock) : query);
    for (const row of rows) read.set(row.name, row);
    const jumps = rows.flatMap(({ jump }) => jump ?? []);
    wanted = [...new Set(jumps)].filter(jump => !read.has(jump));
  }
  return new Map(
    names.flatMap(name => {
      const hops = followJumps(read.get(name), jump => read.get(jump));
      return hops ? [[name, hops]] : [];
    }),
  );
}

/** The hops to one host. */
export async function readHopsTo(db: Tx, name: string, lock?: 'share'): Promise<Hops | undefined> {
  return (await readHops(db, [name], lock)).get(name);
}

/** The hops to a host, of entries that are read already; undefined where the way has no end. */
export function followJumps(
  host: HostRow | undefined,
  find: (name: string) => HostRow | undefined,
): Hops | undefined {
  if (!host) return undefined;
  const hops: Hops = [host];
  for (let { jump } = host; jump !== null; ) {
    const next = find(jump);
    if (!next || hops.includes(next) || hops.length > MAX_JUMPS) return undefined;
    hops.unshift(next);
    jump = next.jump;
  }
  return hops;
}

/** The last of some that are not none. */
export const lastOf = <T>(some: T[]): T => some.at(-1) as T;

/** The entry of the host itself. */
export const hostOf = (hops: Hops): HostRow => lastOf(hops);
