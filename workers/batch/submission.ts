import type { JobRow } from '../../shared/database/schema.ts';
import type { BatchState } from '../../shared/jobs/payloads/batch.ts';
import { submissionDirectory } from '../../shared/jobs/run-intent.ts';
import type { JobContext } from '../context.ts';
import type { LoginNode } from './login-node.ts';
import type { SubmissionState } from './submission-state.ts';

/** A submission as the job's row has it. */
export interface RecordedSubmission {
  directory: string;
  batch: BatchState;
}

/** A job's present submission, with what its files say. */
export interface Submission extends RecordedSubmission {
  files: SubmissionState;
}

/** Undefined before the first one is recorded. */
export function readSubmission(job: JobRow): RecordedSubmission | undefined {
  const directory = submissionDirectory(job);
  return directory && job.batch ? { directory, batch: job.batch } : undefined;
}

export async function look(node: LoginNode, recorded: RecordedSubmission): Promise<Submission> {
  return { ...recorded, files: await node.look(recorded.directory) };
}

/** Writes what is now known of the submission to the job's row. */
export async function record(
  context: JobContext<'batch'>,
  submission: Submission,
  batch: BatchState,
): Promise<Submission> {
  await context.update({ batch });
  return { ...submission, batch };
}
