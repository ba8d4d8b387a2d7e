import { asc, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../../shared/database/connect.ts';
import { jobHistory, jobs } from '../../../shared/database/schema.ts';
import { KINDS_WITH_OWN_STATE } from '../../../shared/jobs/catalog.ts';
import { isOwnIntent } from '../../../shared/jobs/run-intent.ts';

const MEANINGS = {
  queued: 'it was accepted',
  claimed: 'a worker took it',
  running: 'the scheduler of its host runs it',
  sent: 'its host was asked to run it',
  lease_lost: 'its worker was lost',
  host_unreachable: 'its host could not be reached any more',
  reconnected: 'its host was reached again',
  cancel_requested: 'somebody asked for its end',
  ended: 'it ended',
} as const;
type EventName = keyof typeof MEANINGS;
const NAMES = Object.keys(MEANINGS) as EventName[];

export const historyEvent = z
  .object({
    time: z.date(),
    event: z.enum(NAMES).describe(NAMES.map(name => `\`${name}\`: ${MEANINGS[name]}`).join('; ')),
    worker: z.string().optional().describe('That had the job then.'),
  })
  .meta({ id: 'JobHistoryEvent' });
type HistoryEvent = z.infer<typeof historyEvent>;

/** What happened to a job, in this order: from its row, and from what that does not keep. */
export async function readJobHistory(db: Tx, id: string): Promise<HistoryEvent[]> {
  const [row] = await db
    .select({
      kind: jobs.kind,
      epoch: jobs.epoch,
      worker: jobs.worker,
      created: jobs.created,
      started: jobs.started,
      runAt: jobs.runAt,
      cancelRequested: jobs.cancelRequested,
      finished: jobs.finished,
    })
    .from(jobs)
    .where(eq(jobs.id, id));
  if (!row) return [];
  const kept = await db
    .select()
    .from(jobHistory)
    .where(eq(jobHistory.job, id))
    .orderBy(asc(jobHistory.seq));
  // The row names the last worker; a job that was dispatched again may have had another one first.
  const first = row.epoch === 1 ? row.worker : undefined;
  const hasOwnState = KINDS_WITH_OWN_STATE.some(kind => kind === row.kind);
  const events = [
    at('queued', row.created),
    hasOwnState ? at('running', row.started) : at('claimed', row.started, first),
    at('sent', isOwnIntent(row) ? row.runAt : null),
    ...kept.map(({ event, at: time, worker }) => at(event, time, worker)),
    at('cancel_requested', row.cancelRequested),
    at('ended', row.finished, row.worker),
  ];
  return events.filter(event => event !== undefined).sort(byTime);
}

function at(event: EventName, time: Date | null, worker?: string | null): HistoryEvent | undefined {
  if (time === null) return undefined;
  return { time, event, ...(worker ? { worker } : {}) };
}

/** Events of one millisecond are in the order of their names above. */
const byTime = (a: HistoryEvent, b: HistoryEvent): number =>
  a.time.getTime() - b.time.getTime() || NAMES.indexOf(a.event) - NAMES.indexOf(b.event);
