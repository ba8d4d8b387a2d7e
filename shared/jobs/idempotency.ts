import { and, eq, inArray, isNull, or, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { idempotencyKeys, jobs } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';
import { isAwaitedKind, JOB_KINDS } from './catalog.ts';
import { type JobSummary, summaryColumns } from './job-record.ts';

/** An Idempotency-Key: the same key again gives the same job, with another body 409. */
export interface IdempotencyKey {
  route: string;
  key: string;
  /** Keyed HMAC of the request's body. */
  body: string;
  /** Like `body`, with SECRET_KEY_BEFORE: for keys that were stored under it. */
  bodyBefore?: string;
}

/** Streamed output is removed an hour after the job's end: then the job has nothing to answer with. */
const hasOutput = sql`not (${jobs.outputStreamed} and coalesce(${jobs.finished} < now() - interval '50 minutes', false))`;

/**
 * Cancelled because its client disconnected, or seemed to (reader-signs.ts): a client that sends the request again wants it
 * done.
 */
const wasAbandoned = sql<boolean>`(${inArray(jobs.kind, JOB_KINDS.filter(isAwaitedKind))} and (${jobs.cancelRequested} is not null or ${jobs.state} = 'cancelled') and ${jobs.userCancelled} is not true and ${jobs.state} <> 'succeeded')`;

/** What became of the earlier request with this key. */
interface EarlierRequest {
  /** The request's job, which answers the repeat as well. */
  job?: JobSummary;
  /** Set where its client left: from then on its job may have changed a file of the host, which a repeat may find changed. */
  runAt?: Date;
}

/**
 * What became of the earlier request with this key, within the last 24 h. Locks the key until the transaction ends: of two
 * requests with one key the second waits, and finds the job of the first.
 */
export async function findEarlierRequest(
  tx: Tx,
  owner: string,
  given: IdempotencyKey,
): Promise<EarlierRequest> {
  await tx.execute(
    sql`select pg_advisory_xact_lock(hashtextextended(${`${owner}\n${given.route}\n${given.key}`}, 0))`,
  );
  const [found] = await tx
    .select({ job: summaryColumns, body: idempotencyKeys.body, wasAbandoned })
    .from(idempotencyKeys)
    .leftJoin(jobs, eq(jobs.id, idempotencyKeys.job))
    .where(
      and(
        eq(idempotencyKeys.owner, owner),
        eq(idempotencyKeys.route, given.route),
        eq(idempotencyKeys.key, given.key),
        sql`${idempotencyKeys.created} > now() - interval '24 hours'`,
        or(isNull(jobs.id), hasOutput),
      ),
    );
  if (!found) return {};
  const isSame = [given.body, given.bodyBefore].includes(found.body);
  if (!isSame) {
    throw new WindlassError('idempotency_conflict', { hint: 'Use a new key for a new request.' });
  }
  if (found.job && found.wasAbandoned) return { runAt: found.job.runAt ?? undefined };
  // Its client knows that it was done, and it must not be done twice.
  if (!found.job) {
    throw new WindlassError('idempotency_conflict', {
      detail: 'Idempotency-Key used already, for a job whose record was removed since.',
      hint: 'Use a new key to have it done once more.',
    });
  }
  return { job: found.job };
}

export async function storeIdempotencyKey(
  tx: Tx,
  owner: string,
  { bodyBefore: _, ...given }: IdempotencyKey,
  job: string,
): Promise<void> {
  await tx
    .insert(idempotencyKeys)
    .values({ owner, ...given, job })
    .onConflictDoUpdate({
      target: [idempotencyKeys.owner, idempotencyKeys.route, idempotencyKeys.key],
      set: { body: given.body, job, created: sql`now()` },
    });
}
