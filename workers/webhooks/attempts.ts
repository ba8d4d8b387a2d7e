import { and, asc, eq, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { Db, Tx } from '../../shared/database/connect.ts';
import {
  jobs,
  users,
  type WebhookRow,
  webhookDeliveries,
  webhooks,
} from '../../shared/database/schema.ts';
import { type JobSummary, summaryColumns } from '../../shared/jobs/job-record.ts';
import { fromKeptRecord } from './message.ts';
import { GAP_SECONDS, GIVE_UP_SECONDS, pauseAfter } from './retry-schedule.ts';

/** A worker holds a webhook this long: the starts of attempts, the longest attempt, and a margin. */
const TAKEN_SECONDS = 25;
/** Between rounds of a receiver that takes nothing. */
const FAILING_PAUSE_SECONDS = 5;

/** A delivery that is due, with the record of its job; undefined where that is lost. */
export interface DueDelivery {
  job: string;
  attempts: number;
  row: JobSummary | undefined;
  /** Seconds since 1970 by the database's clock: receivers refuse messages whose time is not theirs. */
  now: number;
}

/** What came of an attempt. */
export interface Attempted {
  job: string;
  attempts: number;
  status: number | null;
  /** Undefined: it was taken. */
  problem: string | undefined;
  /** The job's record is gone: nothing can be sent, and the receiver is not to blame. */
  isLost?: true;
}

const isDue = sql`state = 'pending' and due <= now()`;
/** A disabled user has webhooks where a release before this one disabled the user: these wait. */
const mayBeSent = sql`${webhooks.disabled} is null
  and not exists (select from ${users} where ${users.username} = ${webhooks.owner} and ${users.disabled})`;

/** Takes webhooks with due deliveries that no other worker holds, longest waiting first. */
export async function takeWebhooks(db: Db, worker: string, most: number): Promise<WebhookRow[]> {
  const free = sql`select id from ${webhooks} where ${mayBeSent}
    and (taken_until is null or taken_until < now()) and (not_before is null or not_before <= now())
    and exists (select from ${webhookDeliveries} d where d.webhook = ${webhooks.id} and ${isDue})
    order by served nulls first, id limit ${most} for update skip locked`;
  return db
    .update(webhooks)
    .set({
      takenBy: worker,
      takenUntil: sql`now() + make_interval(secs => ${TAKEN_SECONDS})`,
    })
    .where(sql`${webhooks.id} = any(array(${free}))`)
    .returning();
}

/** Gives a webhook back, unless another worker has it already. */
export async function returnWebhook(db: Db, worker: string, id: string): Promise<void> {
  await db
    .update(webhooks)
    .set({ takenBy: null, takenUntil: null, served: sql`now()` })
    .where(and(eq(webhooks.id, id), eq(webhooks.takenBy, worker)));
}

/** The deliveries that have been due for longest; none once the webhook is deleted, or it or its user disabled. */
export async function findDue(db: Db, webhook: string, most: number): Promise<DueDelivery[]> {
  const rows = await db
    .select({
      job: webhookDeliveries.job,
      attempts: webhookDeliveries.attempts,
      record: webhookDeliveries.record,
      row: summaryColumns,
      now: sql<number>`floor(extract(epoch from now()))::float8`,
    })
    .from(webhookDeliveries)
    .innerJoin(webhooks, and(eq(webhooks.id, webhookDeliveries.webhook), mayBeSent))
    .leftJoin(jobs, eq(jobs.id, webhookDeliveries.job))
    .where(
      and(
        eq(webhookDeliveries.webhook, webhook),
        // No parameter: it would hide the index of what is pending.
        sql`${webhookDeliveries.state} = 'pending' and ${webhookDeliveries.due} <= now()`,
      ),
    )
    .orderBy(asc(webhookDeliveries.due), asc(webhookDeliveries.job))
    .limit(most);
  return rows.map(({ job, attempts, record, row, now }) => ({
    job,
    attempts,
    now,
    row: row ?? (record ? fromKeptRecord(record) : undefined),
  }));
}

/** Records the outcomes of concurrent attempts. Returns whether the webhook is disabled now. */
export async function recordAttempts(
  db: Db,
  webhook: string,
  attempted: Attempted[],
): Promise<boolean> {
  return db.transaction(async tx => {
    for (const one of attempted) await recordDelivery(tx, webhook, one);
    return recordReceiver(
      tx,
      webhook,
      attempted.filter(one => !one.isLost),
    );
  });
}

/** Seconds of the database's clock, so that no worker's clock decides when patience ends. */
const isOlder = (column: AnyPgColumn, seconds: number) =>
  sql`coalesce(${column} < now() - make_interval(secs => ${seconds}), false)`;

/** Since when it fails, where it does so now and was tried last at `tried`: a gap counts as nothing. */
const failingSince = (since: AnyPgColumn, tried: AnyPgColumn) =>
  sql`case when ${isOlder(tried, GAP_SECONDS)} then now() else coalesce(${since}, now()) end`;

/** It has failed for so long, without a gap before this attempt. */
const hasFailedLong = (since: AnyPgColumn, tried: AnyPgColumn) =>
  sql`(${isOlder(since, GIVE_UP_SECONDS)} and not ${isOlder(tried, GAP_SECONDS)})`;

async function recordDelivery(
  tx: Tx,
  webhook: string,
  { job, attempts, status, problem, isLost }: Attempted,
): Promise<void> {
  const isTaken = problem === undefined;
  const { firstTried, lastTried } = webhookDeliveries;
  const failed = sql`case when ${isLost ?? false} or ${hasFailedLong(firstTried, lastTried)} then 'failed' else 'pending' end`;
  await tx
    .update(webhookDeliveries)
    .set({
      state: isTaken ? 'delivered' : failed,
      attempts: sql`${webhookDeliveries.attempts} + 1`,
      firstTried: failingSince(firstTried, lastTried),
      lastTried: sql`now()`,
      due: sql`now() + make_interval(secs => ${pauseAfter(attempts + 1)})`,
      status,
      problem: problem ?? null,
      ...(isTaken ? { record: null } : {}),
    })
    .where(
      and(
        eq(webhookDeliveries.webhook, webhook),
        eq(webhookDeliveries.job, job),
        eq(webhookDeliveries.state, 'pending'),
      ),
    );
}

/**
 * A receiver that took one delivery is well. One that takes none is left alone for a while, and after days disabled.
 */
async function recordReceiver(tx: Tx, webhook: string, attempted: Attempted[]): Promise<boolean> {
  if (attempted.length === 0) return false;
  const isWell = attempted.some(one => one.problem === undefined);
  // "If a webhook consumer responds with 410 Gone, the sender should disable the endpoint" (Standard Webhooks).
  const isGone = attempted.some(one => one.status === 410);
  const [row] = await tx
    .update(webhooks)
    .set({
      problem: attempted.find(one => one.problem !== undefined)?.problem ?? null,
      ...(isWell
        ? { failingSince: null, notBefore: null }
        : {
            failingSince: failingSince(webhooks.failingSince, webhooks.served),
            notBefore: sql`now() + make_interval(secs => ${FAILING_PAUSE_SECONDS})`,
            disabled: sql`case when ${isGone} or ${hasFailedLong(webhooks.failingSince, webhooks.served)} then now() end`,
          }),
    })
    .where(eq(webhooks.id, webhook))
    .returning({ disabled: webhooks.disabled });
  return row !== undefined && row.disabled !== null;
}
