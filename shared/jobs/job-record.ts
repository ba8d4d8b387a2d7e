import { getTableColumns } from 'drizzle-orm';
import { z } from 'zod';
import { type JobRow, jobs } from '../database/schema.ts';
import { jobResult } from './job-result.ts';
import { JOB_STATES } from './job-states.ts';
import { batchRecord } from './payloads/batch.ts';
import { OBJECT_MEMBERS } from './result-objects.ts';

/** A job without its payload, which may have a MiB: for queries of many jobs, and for polls. */
export type JobSummary = Omit<JobRow, 'payload' | 'leaseExpires' | 'readerSeen'>;

const { payload: _, leaseExpires: __, readerSeen: ___, ...rest } = getTableColumns(jobs);
export const summaryColumns = rest;

/** Why a job failed; further members belong to the code. */
export const jobErrorRecord = z
  .looseObject({ code: z.string(), detail: z.string(), hint: z.string().optional() })
  .meta({ id: 'JobError' });
/** A job as its owner sees it. */
export const jobRecord = z
  .object({
    id: z.string(),
    kind: z.string(),
    state: z.enum(JOB_STATES),
    label: z.string().nullable().describe('What it is, in one line.'),
    name: z.string().nullable().describe("The client's own."),
    progress: z.number().min(0).max(1).nullable(),
    message: z
      .string()
      .nullable()
      .describe('What it does, or why it waits; null once it has ended.'),
    host: z.string().nullable(),
    session: z.string().nullable(),
    project: z.string().nullable(),
    model: z.string().nullable(),
    upload: z.string().nullable(),
    owner: z.string(),
    worker: z.string().nullable().describe('The last one that had it.'),
    created: z.date(),
    started: z.date().nullable(),
    finished: z.date().nullable(),
    result: jobResult.nullable().describe('What came of it.'),
    error: jobErrorRecord.nullable(),
    retryOf: z.string().nullable(),
    requestId: z
      .string()
      .nullable()
      .describe('Of the request that started it, as in the log and the audit.'),
    /** Null until a batch job is submitted, and for other jobs. */
    batch: batchRecord.nullable(),
  })
  .meta({ id: 'Job' });

/** A member that the record lacks does not compile. */
export const toJobRecord = (row: JobSummary): z.output<typeof jobRecord> => ({
  id: row.id,
  kind: row.kind,
  state: row.state,
  label: row.label,
  name: row.name,
  progress: row.progress,
  message: messageOf(row),
  host: row.host,
  session: row.session,
  project: row.project,
  model: row.model,
  upload: row.upload,
  owner: row.owner,
  worker: row.worker,
  created: row.created,
  started: row.started,
  finished: row.finished,
  result: publicResult(row),
  error: row.error,
  retryOf: row.retryOf,
  requestId: row.requestId,
  batch: publicBatch(row),
});

/** What the job does or waits for, if that is known; null once it has ended. */
export function messageOf(row: JobSummary): string | null {
  const { message, unreachableSince, finished, state, batch } = row;
  // The message of an ended job is about its last step, which is over.
  if (finished) return null;
  if (unreachableSince) return 'waiting: there is no connection to the host';
  if (message !== null || !batch) return message;
  if (batch.unanswered !== undefined) {
    const does = row.cancelRequested ? 'being cancelled' : 'waiting';
    return `${does}: the batch system does not answer: ${batch.unanswered}`;
  }
  return state === 'queued' ? wordsOf(batch) : null;
}

/** What the batch system says of a job that waits there. */
function wordsOf({ engine, id, state, reason }: NonNullable<JobRow['batch']>): string | null {
  const words = [state, reason].filter(word => word !== null).join(', ');
  return id === null || words === '' ? null : `job ${id} of ${engine}: ${words}`;
}

/** Leaves out the batch system's last words where the job ended before they told the end: they are outdated. */
function publicBatch({ batch, finished }: JobSummary): z.output<typeof batchRecord> | null {
  if (!batch) return null;
  const isOpenThere = batch.phase !== 'ended' && batch.phase !== 'stopped';
  const outdated = finished && isOpenThere ? { state: null, reason: null } : {};
  return batchRecord.parse({ ...batch, ...outdated });
}

/** Object keys are internal. */
function publicResult({ result }: JobSummary): z.output<typeof jobResult> | null {
  if (result === null || typeof result !== 'object') return null;
  return Object.fromEntries(Object.entries(result).filter(([name]) => !OBJECT_MEMBERS.has(name)));
}
