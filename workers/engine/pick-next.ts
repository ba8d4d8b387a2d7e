import { type SQL, sql } from 'drizzle-orm';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { OF_ACTIVE_WORKERS, quote, type ShareRules } from '../../shared/jobs/fair-share.ts';
import { DUE, hasSlot, isWaiting } from '../../shared/jobs/job-conditions.ts';
import { isSupported, type SupportedVersions } from '../../shared/jobs/payload-versions.ts';

export interface Picked extends Record<string, unknown> {
  /** The picked jobs in the order of their turns, separated by commas; null: none. */
  ids: string | null;
  /** The owner of the last picked job. */
  last: string | null;
  /** Due jobs, the picked ones included; counts as many per owner as could be picked. */
  due: number;
  /** The number of owners of due jobs. */
  owners: number;
  /** Some owners whose other jobs wait behind jobs that no worker supports: see park-unsupported.ts. */
  hidden: string[] | null;
}

/** How many jobs that no worker supports are skipped for each owner. */
const LOOKED_PAST = 16;
const MAX_HIDDEN = 10;

/** The order of an owner's due jobs: those of hosts that are unreachable may take a turn before new ones. */
const SORT = { released: 1, unreachableFirst: 2, fresh: 3, unreachable: 4 };

/** A number or a text as a literal of the statement. */
const literal = (value: string | number) =>
  sql.raw(
    typeof value === 'number'
      ? String(value)
      : `convert_from(decode('${Buffer.from(value).toString('hex')}', 'hex'), 'UTF8')`,
  );

/**
 * Selects the jobs for the free slots (decision 33). `after`: the owner of the last slot given; equal owners take turns from
 * there. `isTurnOfUnreachable`: jobs of hosts that are unreachable come before new ones.
 *
 * Looks for the first job of each owner. Before the nth of these owners in turn come n - 1 jobs of others, so only the first
 * free - n + 1 of its own jobs can be picked; no more are read, by index. Whether a worker supports them does not change that:
 * jobs that none supports hide what is behind them until they are parked.
 *
 * Has no parameters, so that it is planned each time: a plan cached for a small table would sort all waiting jobs.
 */
export function pickNext(
  queue: QueueName,
  given: {
    free: number;
    rules: ShareRules;
    after: string;
    isTurnOfUnreachable: boolean;
    supported: SupportedVersions;
  },
): SQL {
  const { share, half, reserve } = given.rules;
  const free = literal(given.free);
  const ofQueue = sql`from jobs where queue = ${sql.raw(quote(queue))}`;
  const waiting = sql`${ofQueue} and ${isWaiting}`;
  const canBeDone = isSupported(sql`${literal(JSON.stringify(given.supported))}::jsonb`);
  /** The first due jobs of one sort, of the owner in `whose`. */
  const first = (most: SQL, sort: number, which: string) => sql`
    (select ${literal(sort)} as sort, not_before, id, ${canBeDone} as supported
      ${waiting} and owner = whose.owner and ${sql.raw(which)} order by not_before, id limit ${most})`;
  const firstOfAll = (most: SQL) => sql`
    ${first(most, SORT.released, DUE.released)}
    union all
    ${first(most, SORT.fresh, DUE.fresh)}
    union all
    ${first(most, given.isTurnOfUnreachable ? SORT.unreachableFirst : SORT.unreachable, DUE.unreachable)}`;
  return sql`
    with recursive owners as (
      -- Whose jobs wait, one look at the index for each.
      (select owner ${waiting} order by owner limit 1)
      union all
      select (select owner ${waiting} and owner > owners.owner order by owner limit 1)
      from owners where owners.owner is not null
    ), held as (
      -- How many slots each has.
      select owner, count(*) as slots ${ofQueue} and ${hasSlot} and ${sql.raw(OF_ACTIVE_WORKERS)} group by owner
    ), first_of_owner as (
      -- Whether one of an owner's first due jobs is supported; null: none is due.
      select whose.owner, coalesce(held.slots, 0) as slots, coalesce(
        (select true from (${firstOfAll(literal(LOOKED_PAST))}) due where supported limit 1),
        (select false from (${firstOfAll(literal(1))}) due limit 1)) as supported
      from owners whose left join held on held.owner = whose.owner where whose.owner is not null
    ), owners_in_turn as (
      -- How many jobs of each can be picked, after those of the owners before.
      select owner, slots, ${free} - row_number() over (order by slots, owner <= ${literal(given.after)}, owner) + 1 as most_pickable
      from first_of_owner where supported
    ), ready as (
      -- These jobs; the turn of each is how many slots its owner then has.
      select whose.owner, next.id, next.supported, whose.slots + next.place as turn
      from owners_in_turn whose cross join lateral (
        select id, supported, row_number() over (order by supported desc, sort, not_before, id) as place
        from (${firstOfAll(sql`greatest(whose.most_pickable, 0)`)}) due
      ) next
      where whose.most_pickable > 0
    ), in_turn as (
      -- Those within the shares of their owners, in the order of their turns.
      select id, owner, turn,
        row_number() over (order by turn, owner <= ${literal(given.after)}, owner, id) as place
      from ready
      where supported and (turn <= ${literal(share)} or (select count(*) from owners_in_turn) = 1)
    ), picked as (
      -- For the free slots, of which the reserve is for owners that have few.
      select id, owner, place from in_turn
      where place <= ${free} and (turn <= ${literal(half)} or place <= ${free} - ${literal(reserve)})
    )
    select string_agg(id, ',' order by place) as ids,
      (array_agg(owner order by place desc))[1] as last,
      (select count(*)::int from ready where supported) as due,
      (select count(*)::int from owners_in_turn) as owners,
      (select json_agg(owner) from (
        select owner from first_of_owner where not supported union select owner from ready where not supported
        limit ${literal(MAX_HIDDEN)}) hiding) as hidden
    from picked`;
}
