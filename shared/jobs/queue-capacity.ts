import { QUEUES, type QueueName } from './catalog.ts';
import { IS_HELD } from './job-conditions.ts';
import { ALIVE_SECONDS, ENTRIES_PER_SLOT } from './lease.ts';

/** SQL for how many entries the queue has room for: what its workers can start soon, less what was dispatched already. */
export function queueCapacity(queue: QueueName): string {
  // The name becomes part of the statement's text.
  if (!QUEUES.includes(queue)) throw new Error(`no queue: ${queue}`);
  const slots = `select coalesce(sum((slots->>'${queue}')::int), 0) from workers where seen > now() - interval '${ALIVE_SECONDS} seconds'`;
  const dispatched = `select count(*) from jobs where queue = '${queue}' and ${IS_HELD} and lease_token is null`;
  return `(${ENTRIES_PER_SLOT} * (${slots}) - (${dispatched}))`;
}
