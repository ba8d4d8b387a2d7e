import type { JobRow } from '../../shared/database/schema.ts';
import type { JobContext } from '../context.ts';
import { ReleaseJob } from '../engine/release-job.ts';

/** The message of a job that waits. */
export const WAITING = 'waiting: the disk of the service is full';
/** Seconds until there may be room; so far apart are the tries of many jobs. */
const LEAST_SECONDS = 15;
const SPREAD_SECONDS = 15;

/**
 * Releases a job whose output has no room on the disk (decision 60). What its command prints meanwhile stays on its host,
 * where it waits in its own write once the spool is full.
 */
export const awaitDisk = (): ReleaseJob =>
  new ReleaseJob(WAITING, LEAST_SECONDS + Math.random() * SPREAD_SECONDS, { message: WAITING });

export const isWaitingForDisk = ({ message }: Pick<JobRow, 'message'>): boolean =>
  message === WAITING;

/** There is room again, or nobody waits for it any more. */
export async function endDiskWait({ job, updateVisibly }: JobContext): Promise<void> {
  if (isWaitingForDisk(job)) await updateVisibly({ message: null });
}
