import { ERRORS, type ErrorRecord, WindlassError } from '../../../shared/errors/errors.ts';
import type { JobSummary } from '../../../shared/jobs/job-view.ts';

/** The error that a job ended with, as an answer of its own. */
export function jobError(row: JobSummary): WindlassError {
  const { code, detail, hint, ...extra } = row.error as ErrorRecord;
  const known = Object.hasOwn(ERRORS, code) ? code : 'internal';
  return new WindlassError(known, { detail, hint, extra });
}
