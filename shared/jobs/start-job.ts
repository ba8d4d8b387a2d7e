import { sql } from 'drizzle-orm';
import { recordAudit } from '../audit/audit.ts';
import type { Tx } from '../database/connect.ts';
import { jobs, sessions } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';
import { newId } from '../ids.ts';
import { auditOf } from './audited-starts.ts';
import { type JobKind, jobDefinition, type Payload, requestSchema } from './catalog.ts';
import { dispatchedAtOnce } from './fair-share.ts';
import { isOpenByOwner } from './job-conditions.ts';
import { type JobSummary, summaryColumns } from './job-record.ts';
import { labelOf, oneLine } from './labels.ts';
import { payloadBytes } from './payload-bytes.ts';
import { versionNeeded } from './payload-versions.ts';
import { effectRepeated } from './run-intent.ts';

export interface JobRequest<K extends JobKind = JobKind> {
  kind: K;
  payload: Payload<K>;
  owner: string;
  /** Given where other rows of the same transaction refer to the job. */
  id?: string;
  session?: string;
  /** What it is, in one line, where its payload does not tell: see labels.ts. */
  label?: string;
  /** The client's own. */
  name?: string;
  /** The job is cancelled when one of these is deleted. */
  project?: string;
  model?: string;
  upload?: string;
  retryOf?: string;
  requestId?: string;
  /** Since when an abandoned job of the same request may have changed its file: see findEarlierRequest(). */
  runAt?: Date;
  /** The client's address, for the audit. */
  address?: string;
  /** The most open jobs of the owner; 0: no limit. */
  limit: number;
  /** Called with how many there were, where they were counted. */
  onCount?: (open: number) => void;
  /** LIMIT_SHARE. */
  share: number;
}

/**
 * Inserts a job's row in the caller's transaction. Where its user may have a slot at once, the row is marked as
 * dispatched and the caller adds the entry after the commit; after a crash in between the dispatcher adds it.
 */
export async function startJob<K extends JobKind>(
  tx: Tx,
  request: JobRequest<K>,
): Promise<JobSummary> {
  const { limit, onCount, share, address: _, ...columns } = request;
  if (limit > 0) await refuseTooMany(tx, request);
  const { output, queue } = jobDefinition(request.kind);
  const given = payloadToStore(request);
  const [row] = await tx
    .insert(jobs)
    .values({
      ...columns,
      id: columns.id ?? newId(),
      queue,
      payload: given,
      payloadBytes: payloadBytes(given),
      label: columns.label ? oneLine(columns.label) : labelOf(request.kind, given),
      host: columns.session && hostOf(columns.session),
      payloadVersion: versionNeeded(request.kind, given),
      outputStreamed: output === 'streamed',
      readerSeen: output === 'streamed' ? sql`now()` : null,
      ...effectRepeated(columns.runAt),
      epoch: 1,
      dispatched: sql`(select ${sql.raw(dispatchedAtOnce(queue, share))} from (select ${columns.owner}::text as owner) asked)`,
    })
    .returning(summaryColumns);
  if (!row) throw new Error('insert returned no row');
  const event = auditOf(request);
  if (event) await recordAudit(tx, event);
  return row;
}

/** A repeated job keeps its payload, which was accepted before, whatever the rules are today. */
export function payloadToStore<K extends JobKind>({
  kind,
  payload,
  retryOf,
}: Pick<JobRequest<K>, 'kind' | 'payload' | 'retryOf'>): Payload<K> {
  const schema = retryOf === undefined ? requestSchema(kind) : jobDefinition(kind).payload;
  return schema.parse(payload) as Payload<K>;
}

const hostOf = (session: string) =>
  sql`(select ${sessions.hostname} from ${sessions} where ${sessions.sid} = ${session})`;

async function refuseTooMany(tx: Tx, { owner, limit, onCount }: JobRequest): Promise<void> {
  const [open] = await tx.execute<{ n: number }>(
    sql`select count(*)::int as n from (select 1 from ${jobs} where ${jobs.owner} = ${owner} and ${isOpenByOwner} limit ${limit}) open`,
  );
  if ((open?.n ?? 0) < limit) return onCount?.(open?.n ?? 0);
  throw new WindlassError('too_many_requests', {
    detail: `You have ${limit} open jobs, which is the limit.`,
    hint: 'Wait for some of them to end, or cancel some. LIMIT_OPEN_JOBS sets the limit.',
    headers: { 'Retry-After': '10' },
  });
}
