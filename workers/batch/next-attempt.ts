import type { JobRow } from '../../shared/database/schema.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import type { Submission } from './submission.ts';

/** Seconds between two attempts at a job whose host nobody polls. A poll wakes the job earlier. */
export const LOOK_AGAIN_SECONDS = 60;
/** Seconds until the batch system is asked again for what a poll cannot tell. */
export const ASK_AGAIN_SECONDS = 5;

/** Releases the job until its next attempt. */
export function nextAttempt(job: JobRow, { files }: Submission, seconds: number): ReleaseJob {
  const isRunning = job.state === 'running' || files.start === 'begun';
  const started = isRunning && !job.started ? { started: new Date() } : {};
  return new ReleaseJob('its batch system has the job', seconds, {
    ...started,
    state: isRunning ? 'running' : 'queued',
    consecutiveLosses: 0,
  });
}

export const secondsSince = (time: string | undefined) =>
  time === undefined ? 0 : (Date.now() - Date.parse(time)) / 1_000;
