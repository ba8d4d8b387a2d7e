import type { Database } from '../database/connect.ts';
import { newId } from '../ids.ts';
import { auditOf } from './audited-starts.ts';
import { jobDefinition, type SessionKind } from './catalog.ts';
import { dispatchedAtOnce } from './fair-share.ts';
import { IS_OPEN } from './job-conditions.ts';
import type { JobSummary } from './job-record.ts';
import { labelOf } from './labels.ts';
import { versionNeeded } from './payload-versions.ts';
import { type JobRequest, payloadToStore } from './start-job.ts';

/** A new job's columns, where its request sets no others. */
const NEW_JOB = {
  project: null,
  model: null,
  upload: null,
  retryOf: null,
  state: 'queued',
  progress: null,
  message: null,
  result: null,
  error: null,
  started: null,
  finished: null,
  version: 0,
  notBefore: null,
  leaseToken: null,
  worker: null,
  consecutiveLosses: 0,
  cancelRequested: null,
  userCancelled: null,
  stdoutBytes: 0,
  stderrBytes: 0,
  runAt: null,
  runPlace: null,
  batch: null,
  unreachableSince: null,
  runRemoved: false,
  payloadBytes: null,
} as const satisfies Partial<JobSummary>;

/**
 * startJob() in one statement, for the most frequent jobs: one round trip instead of five, and 0.3 of the time.
 * Undefined, with nothing written, where startJob() is needed: the session is gone or was unused for a minute, the
 * owner has too many jobs, or payloadBytes() count.
 */
export async function startJobInSession<K extends SessionKind>(
  { sql }: Database,
  request: JobRequest<K> & { session: string },
  idleSeconds: number,
): Promise<JobSummary | undefined> {
  const { kind, owner, session, limit, onCount, share, requestId = null, name = null } = request;
  const { output, queue } = jobDefinition(kind);
  const outputStreamed = output === 'streamed';
  const given = payloadToStore(request);
  const payloadVersion = versionNeeded(kind, given);
  const label = labelOf(kind, given);
  const id = newId();
  const event = auditOf(request);
  const audit = event
    ? sql`insert into audit_pending (username, address, action, target, request_id)
        select ${event.user}, ${event.address}, ${event.action}, ${event.target}, ${requestId} from started`
    : sql`select`;
  // The session is locked: a transaction that ends it waits for this one, and then cancels the new job too.
  const [row] = await sql<
    { created: string; dispatched: string | null; open: number; host: string }[]
  >`
    with session as (
      select hostname from sessions
      where sid = ${session} and owner = ${owner} and opened is not null and ended is null
        and accessed > now() - interval '1 minute' and accessed > now() - make_interval(secs => ${idleSeconds})
      for share
    ), asked as (
      select ${owner}::text as owner
    ), open as (
      select count(*)::int as n
      from (select from jobs where owner = ${owner} and ${sql.unsafe(IS_OPEN)} limit ${limit}::int) counted
    ), started as (
    insert into jobs (id, kind, queue, owner, session, host, label, name, request_id, payload, payload_version, output_streamed, reader_seen, epoch, dispatched)
    select ${id}, ${kind}, ${queue}, ${owner}, ${session}, session.hostname, ${label}, ${name}, ${requestId}, ${JSON.stringify(given)}::jsonb,
      ${payloadVersion}, ${outputStreamed}, case when ${outputStreamed} then now() end,
      1, ${sql.unsafe(dispatchedAtOnce(queue, share))}
    from session, asked, open
    where ${limit}::int = 0 or open.n < ${limit}::int
    returning created, dispatched, host, (select n from open) as open
    ), audit as (${audit})
    select created, dispatched, host, open from started`;
  if (!row) return undefined;
  if (limit > 0) onCount?.(row.open);
  const created = new Date(row.created);
  const dispatched = row.dispatched === null ? null : created;
  return {
    ...NEW_JOB,
    id,
    kind,
    queue,
    owner,
    session,
    host: row.host,
    label,
    name,
    requestId,
    payloadVersion,
    outputStreamed,
    epoch: 1,
    created,
    dispatched,
  };
}
