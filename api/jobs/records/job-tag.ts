import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { entityTag } from '../../http/conditional-requests.ts';

/** The tag has the state: after an asynchronous failover a job may end with the version that it had before. */
export const jobTag = (
  { version, state }: { version: string | number; state: JobSummary['state'] },
  form = '',
): string => entityTag(`${version}-${state}${form}`);
