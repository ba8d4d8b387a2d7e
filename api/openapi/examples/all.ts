import type { Json } from '../json.ts';
import { ACCOUNT_EXAMPLES } from './accounts.ts';
import { JOB_EXAMPLES } from './jobs.ts';
import { OPERATION_EXAMPLES } from './operations.ts';
import { PROBLEM_EXAMPLES } from './problems.ts';
import { PROJECT_EXAMPLES } from './projects.ts';
import { SESSION_EXAMPLES } from './sessions.ts';
import { TABLE_EXAMPLES } from './tables.ts';
import { UPLOAD_EXAMPLES } from './uploads.ts';

/** An example of what is sent or answered, by the name of its schema; a test holds each against it. */
export const EXAMPLES: Record<string, Json> = {
  ...PROBLEM_EXAMPLES,
  ...SESSION_EXAMPLES,
  ...JOB_EXAMPLES,
  ...UPLOAD_EXAMPLES,
  ...TABLE_EXAMPLES,
  ...PROJECT_EXAMPLES,
  ...ACCOUNT_EXAMPLES,
  ...OPERATION_EXAMPLES,
};
