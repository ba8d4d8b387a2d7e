import { getTableColumns } from 'drizzle-orm';
import { type JobRow, jobs } from '../database/schema.ts';
import { batchView } from './payloads/batch.ts';

/** A job without its payload, which may have a MiB: for queries of many jobs, and for polls. */
export type JobSummary = Omit<JobRow, 'payload'>;

const { payload: _, ...rest } = getTableColumns(jobs);
export const summaryColumns = rest;

/** A job as its owner sees it. */
export const jobView = (row: JobSummary) => ({
  id: row.id,
  kind: row.kind,
  state: row.state,
  label: row.label,
  name: row.name,
  progress: row.progress,
  message: row.message,
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
  batch: row.batch && batchView.parse(row.batch),
});

/** Object keys are internal. */
function publicResult({ result }: JobSummary): unknown {
  if (result === null || typeof result !== 'object') return result;
  const { object: _, poster: __, sprite: ___, ...rest } = result as Record<string, unknown>;
  return rest;
}
