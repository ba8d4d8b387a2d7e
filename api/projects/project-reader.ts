import { eq, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { batchLookups } from '../../shared/database/batch-lookups.ts';
import type { Database, Tx } from '../../shared/database/connect.ts';
import { cacheEntries, type ProjectRow, type Role } from '../../shared/database/schema.ts';
import { isId } from '../../shared/ids.ts';
import { type ProjectAccess, requireProjectRole } from './access.ts';
import { type Acl, toAcl } from './acl.ts';

interface ProjectKey {
  pid: string;
  username: string;
}

/** A project as one of its members sees it. */
interface ProjectOfMember extends ProjectAccess {
  acl: Acl;
  cache: CacheUse;
}

/** What a project's cache holds. */
export interface CacheUse {
  bytes: number;
  /** When the entry that was used least recently was last used; null where there is none. */
  oldest: Date | null;
}

/** Entries of a cache that are summed up in a query for several readers: with more of them all would wait for one. */
const FEW = 100;
/** Users whose large caches are looked up apart at once, about. */
const USERS = 1_000;

/** Without what the cache holds where its entries are many. */
type Found = Omit<ProjectOfMember, 'cache'> & { cache: CacheUse | null };

type Row = { [K in keyof Omit<ProjectRow, 'deleted'>]: unknown } & {
  role: Role | null;
  members: { user: string; role: Role }[];
  cache_bytes: string | null;
  cache_oldest: unknown;
};

/**
 * A function that reads a project with its access list for a member, and throws `not_found` for others. Requests that
 * come during a query share the next one; large caches are summed up apart. Written by hand: with two queries of
 * drizzle's a GET reached 0.27 of an Express without a query.
 */
export function makeProjectReader(
  database: Database,
): (key: ProjectKey) => Promise<ProjectOfMember> {
  const read = batchLookups(async (keys: ProjectKey[]): Promise<(Found | undefined)[]> => {
    const rows = await database.sql<Row[]>`
      select project.*
      from rows from (json_to_recordset(${JSON.stringify(keys)}::json) as (pid text, username text))
      with ordinality as wanted(pid, username, place)
      left join lateral (
        select projects.pid, name, description, version, created, updated, mine.role, (
          select json_agg(json_build_object('user', m.username, 'role', m.role) order by m.username)
          from project_members m where m.project = projects.pid
        ) as members, cached.*
        from projects join project_members mine on mine.project = projects.pid
        cross join lateral (
          select case when count(*) <= ${FEW} then coalesce(sum(size), 0) end as cache_bytes, min(used) as cache_oldest
          from (
            select size, used from cache_entries where project = projects.pid order by used limit ${FEW + 1}
          ) first
        ) cached
        where projects.pid = wanted.pid and projects.deleted is null and mine.username = wanted.username
        limit 1
      ) project on true
      order by place`;
    return rows.map(toProjectOfMember);
  });
  // By user: nobody waits for the sums of another one's projects, and they take one connection.
  const largeCaches = new LRUCache({
    max: USERS,
    memoMethod: (_username: string) =>
      batchLookups(async (pids: string[]) => {
        const uses: CacheUse[] = [];
        for (const pid of pids) uses.push(await readCacheUse(database.db, pid));
        return uses;
      }),
  });
  return async key => {
    const { pid, username } = key;
    const found = requireProjectRole(isId(pid) ? await read(key) : undefined, {
      ...key,
      role: 'reader',
    });
    return { ...found, cache: found.cache ?? (await largeCaches.memo(username)(pid)) };
  };
}

function toProjectOfMember({
  role,
  members,
  cache_bytes,
  cache_oldest,
  ...row
}: Row): Found | undefined {
  if (!role) return undefined;
  const time = (value: unknown) => new Date(String(value));
  const project = { ...row, created: time(row.created), updated: time(row.updated), deleted: null };
  const oldest = cache_oldest === null ? null : time(cache_oldest);
  const cache = cache_bytes === null ? null : { bytes: Number(cache_bytes), oldest };
  return { project: project as ProjectRow, role, acl: toAcl(members), cache };
}

/** Sums up all entries of a project. */
export async function readCacheUse(db: Tx, pid: string): Promise<CacheUse> {
  const [row] = await db
    .select({
      bytes: sql<string>`coalesce(sum(${cacheEntries.size}), 0)`,
      oldest: sql<string | null>`min(${cacheEntries.used})`,
    })
    .from(cacheEntries)
    .where(eq(cacheEntries.project, pid));
  const oldest = row?.oldest;
  return { bytes: Number(row?.bytes ?? 0), oldest: oldest ? new Date(oldest) : null };
}
