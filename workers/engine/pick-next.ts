import { type SQL, sql } from 'drizzle-orm';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import { isWaiting } from '../../shared/jobs/job-conditions.ts';
import { isUnderstood, type Understood } from '../../shared/jobs/understood.ts';

/**
 * Who is next of the jobs that are understood, round-robin between users: the first due job of each, then the second of each, and so on. Of a user's jobs
 * those that were released come first, then the others in the order of their ids.
 *
 * Reads as many rows as there are owners times `room`, however many wait: the index jobs_waiting is asked for one owner
 * after another, and for the first jobs of each. Rows that are not due yet lie beyond those that are. Without parameters,
 * so that it is planned each time: a plan that was kept since the table was small would sort all that wait.
 */
export function pickNext(queue: QueueName, room: number, understood: Understood = {}): SQL {
  const waiting = sql`from jobs where queue = ${sql.raw(`'${queue}'`)} and ${isWaiting}`;
  // As text: see above.
  const json = sql.raw(`'${JSON.stringify(understood).replaceAll("'", "''")}'::jsonb`);
  const next = sql`${waiting} and owner = owners.owner and ${isUnderstood(json)}`;
  const first = sql`order by not_before, id limit ${sql.raw(String(room))}`;
  return sql`
    with recursive owners as (
      (select owner ${waiting} order by owner limit 1)
      union all
      select (select owner ${waiting} and owner > owners.owner order by owner limit 1)
      from owners where owners.owner is not null
    )
    select id from owners cross join lateral (
      select id, row_number() over (order by fresh, not_before, id) as turn from (
        (select false as fresh, not_before, id ${next} and not_before <= now() ${first})
        union all
        (select true, not_before, id ${next} and not_before is null ${first})
      ) due
    ) next
    where owners.owner is not null
    order by turn, id limit ${sql.raw(String(room))}`;
}
