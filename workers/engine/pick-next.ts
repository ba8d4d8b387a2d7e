import { type SQL, sql } from 'drizzle-orm';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { OF_ACTIVE_WORKERS, quote, type ShareRules } from '../../shared/jobs/fair-share.ts';
import { hasSlot, IS_AWAY, isWaiting } from '../../shared/jobs/job-conditions.ts';
import { isUnderstood, type Understood } from '../../shared/jobs/payload-versions.ts';

export interface Picked extends Record<string, unknown> {
  /** In the order of their turns, separated by commas; null: none. */
  ids: string | null;
  /** The owner of the last of them. */
  last: string | null;
  /** Due jobs, the picked ones included; counts at most as many per owner as slots are free. */
  due: number;
  /** The number of owners of due jobs. */
  owners: number;
}

/** A number, or a text, as part of the statement's own text. */
const literal = (value: string | number) =>
  sql.raw(
    typeof value === 'number'
      ? String(value)
      : `convert_from(decode('${Buffer.from(value).toString('hex')}', 'hex'), 'UTF8')`,
  );

/**
 * Selects the jobs for the free slots (decision 33). `after`: the owner of the last slot given; equal owners take turns
 * from there. `isTurnOfAway`: jobs of hosts that are away come before new ones.
 *
 * Reads at most owners × free slots rows, by index. Has no parameters, so that it is planned each time: a plan cached
 * for a small table would sort all waiting jobs.
 */
export function pickNext(
  queue: QueueName,
  given: {
    free: number;
    rules: ShareRules;
    after: string;
    isTurnOfAway: boolean;
    understood?: Understood;
  },
): SQL {
  const { share, half, reserve } = given.rules;
  const free = literal(given.free);
  const ofQueue = sql`from jobs where queue = ${sql.raw(quote(queue))}`;
  const waiting = sql`${ofQueue} and ${isWaiting}`;
  const isAway = sql.raw(IS_AWAY);
  const canBeDone = isUnderstood(sql`${literal(JSON.stringify(given.understood ?? {}))}::jsonb`);
  /** The first due jobs of one sort. */
  const first = (sort: number, which: SQL) => sql`
    (select ${literal(sort)} as sort, not_before, id ${waiting} and owner = owners.owner and ${which} and ${canBeDone}
      order by not_before, id limit ${free})`;
  return sql`
    with recursive owners as (
      (select owner ${waiting} order by owner limit 1)
      union all
      select (select owner ${waiting} and owner > owners.owner order by owner limit 1)
      from owners where owners.owner is not null
    ), held as (
      select owner, count(*) as slots ${ofQueue} and ${hasSlot} and ${sql.raw(OF_ACTIVE_WORKERS)} group by owner
    ), due as (
      select owners.owner, next.id, coalesce(held.slots, 0) + next.place as turn
      from owners left join held on held.owner = owners.owner cross join lateral (
        select id, row_number() over (order by sort, not_before, id) as place from (
          ${first(1, sql`${isAway} = 0 and not_before <= now()`)}
          union all
          ${first(3, sql`${isAway} = 0 and not_before is null`)}
          union all
          ${first(given.isTurnOfAway ? 2 : 4, sql`${isAway} = 1 and not_before <= now()`)}
        ) ready
      ) next
    ), dealt as (
      select id, owner, turn,
        row_number() over (order by turn, owner <= ${literal(given.after)}, owner, id) as place
      from due
      where turn <= ${literal(share)} or (select count(distinct owner) from due) = 1
    ), given as (
      select id, owner, place from dealt
      where place <= ${free} and (turn <= ${literal(half)} or place <= ${free} - ${literal(reserve)})
    )
    select string_agg(id, ',' order by place) as ids,
      (array_agg(owner order by place desc))[1] as last,
      (select count(*)::int from due) as due,
      (select count(distinct owner)::int from due) as owners
    from given`;
}
