import { z } from 'zod';
import type { JobSummary } from './job-summary.ts';

const state = z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']);
export const jobRecord = z.object({
  id: z.string(),
  kind: z.string(),
  state,
  progress: z.number().min(0).max(1).nullable(),
  message: z.string().nullable(),
  session: z.string().nullable(),
  worker: z.string().nullable(),
  created: z.date(),
  started: z.date().nullable(),
  finished: z.date().nullable(),
  result: z.unknown(),
  error: z
    .looseObject({ code: z.string(), detail: z.string(), hint: z.string().optional() })
    .nullable(),
  retryOf: z.string().nullable(),
});
/** What a server administrator sees of other people's jobs. */
export const foreignRecord = jobRecord
  .pick({
    id: true,
    kind: true,
    state: true,
    created: true,
    started: true,
    finished: true,
    worker: true,
  })
  .extend({ owner: z.string() });

/** A job as its owner sees it. */
export const jobView = (row: JobSummary) => ({
  id: row.id,
  kind: row.kind,
  state: row.state,
  progress: row.progress,
  message: row.message,
  session: row.session,
  worker: row.leaseToken === null ? null : (row.worker?.split('/').slice(0, 2).join('/') ?? null),
  created: row.created,
  started: row.started,
  finished: row.finished,
  result: publicResult(row),
  error: row.error,
  retryOf: row.retryOf,
});

/** Object keys are internal. */
function publicResult({ result }: JobSummary): unknown {
  if (result === null || typeof result !== 'object') return result;
  const { object: _, ...rest } = result as Record<string, unknown>;
  return rest;
}

/** What a server administrator sees of other people's jobs: never command, payload or output. */
export function foreignView(row: JobSummary) {
  const { id, kind, state, created, started, finished, worker, owner } = row;
  return { id, kind, state, created, started, finished, worker, owner };
}
