import { sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';
import { WAITING } from '../runs/await-disk.ts';
import type { Change } from './apply-poll.ts';

/** Writes to jobs that no worker has now. What an attempt has recorded of a submission since the poll began is kept. */
export async function writeChanges(
  { database, notifications }: Pick<WorkerContext, 'database' | 'notifications'>,
  changes: Record<string, Change>,
): Promise<void> {
  const ids = Object.keys(changes);
  if (ids.length === 0) return;
  const free = sql`select id from ${jobs} where id = ${anyOf(ids)} and num_nonnulls(finished, lease_token) = 0
    order by id for update skip locked`;
  const written = await database.db.execute<{ id: string }>(sql`
    update ${jobs} set
      batch = case when ${jobs.batch} = change.value -> 'read' then change.value -> 'batch' else ${jobs.batch} end,
      state = case when (change.value ->> 'runs')::boolean then 'running' else state end,
      started = case when (change.value ->> 'runs')::boolean then coalesce(started, now()) else started end,
      not_before = case when (change.value ->> 'wakes')::boolean and message is distinct from ${WAITING}
        then now() else not_before end,
      version = version + 1
    from jsonb_each(${JSON.stringify(changes)}::jsonb) change
    where ${jobs.id} = any(array(${free})) and ${jobs.id} = change.key and run_place = change.value ->> 'directory'
    returning ${jobs.id}`);
  for (const { id } of written) notifications.publish('job', id);
  if (ids.some(id => changes[id]?.wakes)) notifications.publish('waiting', 'remote');
}
