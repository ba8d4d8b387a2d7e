import { isErrorCode, WindlassError } from '../../../shared/errors/errors.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';

/** The error that a job ended with, as an answer of its own. */
export function jobError({ error }: Pick<JobSummary, 'error'>): WindlassError {
  const { code = '', detail, hint, ...extra } = error ?? {};
  const known = isErrorCode(code) ? code : 'internal';
  return new WindlassError(known, { detail, hint, extra, headers: retryAfter(extra) });
}

/** Retry-After for an error whose `until` says when it ends; no header for others. */
function retryAfter({ until }: { until?: unknown }): Record<string, string> {
  const ms = typeof until === 'string' ? new Date(until).getTime() - Date.now() : Number.NaN;
  return Number.isNaN(ms) ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(ms / 1_000))) };
}
