import { and, eq, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { QueueName } from '../../shared/jobs/catalog.ts';
import {
  lockOf,
  OF_ACTIVE_WORKERS,
  quote,
  shareRules,
  slotsOf,
} from '../../shared/jobs/fair-share.ts';
import { HAS_SLOT, isWaiting } from '../../shared/jobs/job-conditions.ts';
import { type QueueEntry, toQueueEntry } from '../../shared/jobs/queue.ts';
import type { WorkerContext } from '../context.ts';
import { type QueueSupport, readSupported, updateParked } from './park-unsupported.ts';
import { type Picked, pickNext } from './pick-next.ts';

type Context = Pick<WorkerContext, 'config' | 'database' | 'queues' | 'log'>;

/** Whose turn it is in a queue. Starts anew in another dispatcher process. */
export interface QueueTurn extends QueueSupport {
  /** The last user who was given a slot. */
  last: string;
}

/** How often jobs whose host was unreachable come before those that never began. */
const TURNS_OF_UNREACHABLE = 0.25;

/** Gives the queue's free slots to waiting jobs; true when more jobs may wait. */
export async function dispatchWaiting(context: Context, turn: QueueTurn): Promise<boolean> {
  const { queue } = turn;
  if (!(await hasWaiting(context, queue))) return false;
  for (;;) {
    const { entries, wants, hidden } = await context.database.db.transaction(tx =>
      giveSlots(tx, turn, context.config.LIMIT_SHARE),
    );
    const { length: count } = entries;
    if (count > 0)
      await context.queues.add(queue, entries).catch((err: unknown) => {
        const why = 'the queue is unavailable; its entries are dispatched again later';
        context.log.warn({ err, queue, count }, why);
      });
    const isMoreLeft = await updateParked(context.database.db, turn, hidden);
    if (count === 0 || wants !== 'share') return isMoreLeft || wants !== 'none';
  }
}

/** One cheap statement instead of a transaction, for ticks of an idle service. */
async function hasWaiting({ database }: Context, queue: QueueName): Promise<boolean> {
  const [waiting] = await database.db
    .select({ one: sql`1` })
    .from(jobs)
    .where(and(eq(jobs.queue, queue), isWaiting))
    .limit(1);
  return waiting !== undefined;
}

interface Given {
  entries: QueueEntry[];
  /** What the remaining jobs wait for: free slots, or a larger share, which a user may get once no other waits. */
  wants: 'slots' | 'share' | 'none';
  /** Owners of jobs that no worker supports, before others. */
  hidden: string[];
}

/** Holds the queue's lock: nobody else gives slots, so the counts hold until the commit. */
async function giveSlots(tx: Tx, turn: QueueTurn, limitShare: number): Promise<Given> {
  const { queue, last: after } = turn;
  // Two statements in one round trip: the second one's snapshot is taken after the lock.
  const [, counted] = (await tx.execute(
    sql.raw(`select pg_advisory_xact_lock(${lockOf(queue)});
      select (${slotsOf(queue)}) as slots, (
        select count(*)::int from jobs where queue = ${quote(queue)} and ${HAS_SLOT} and ${OF_ACTIVE_WORKERS}) as held`),
  )) as unknown as { slots: number; held: number }[][];
  const { slots = 0, held = 0 } = counted?.[0] ?? {};
  const free = slots - held;
  if (free <= 0) return { entries: [], wants: 'slots', hidden: [] };
  const rules = shareRules(slots, limitShare);
  const supported = await readSupported(tx, turn);
  // The last of them was lost just now.
  if (!supported) return { entries: [], wants: 'slots', hidden: [] };
  const isTurnOfUnreachable = Math.random() < TURNS_OF_UNREACHABLE;
  const [picked] = await tx.execute<Picked>(
    pickNext(queue, { free, rules, after, isTurnOfUnreachable, supported }),
  );
  const { ids, last, due = 0, owners = 0 } = picked ?? {};
  const hidden = picked?.hidden ?? [];
  if (!ids) return { entries: [], wants: due > 0 ? 'slots' : 'none', hidden };
  // A row that is locked, to be cancelled, is passed over, to avoid deadlocks.
  turn.last = last ?? after;
  const wanted = ids.split(',');
  const unlocked = sql`select id from ${jobs} where ${jobs.id} = ${anyOf(wanted)} for update skip locked`;
  const rows = await tx
    .update(jobs)
    .set({ epoch: sql`${jobs.epoch} + 1`, dispatched: sql`now()` })
    .where(and(sql`${jobs.id} = any(array(${unlocked}))`, isWaiting))
    .returning({ id: jobs.id, epoch: jobs.epoch, kind: jobs.kind, session: jobs.session });
  const isLeft = due > wanted.length || wanted.length === free;
  const wants = owners > 1 && wanted.length < free ? 'share' : 'slots';
  return { entries: rows.map(toQueueEntry), wants: isLeft ? wants : 'none', hidden };
}
