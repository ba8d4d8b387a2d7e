import { failureLevel } from '../../shared/database/failure-level.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';
import { appendAudit, removeOldAudit } from './audit-chain.ts';
import { CacheLimiter } from './cache-limits.ts';
import { purgeDeletedProjects } from './deleted-projects.ts';
import {
  removeDeadWorkers,
  removeExpiredIdempotencyKeys,
  removeExpiredLogins,
  removeFramesOfEndedVideos,
  removeSegmentsOfEndedVideos,
} from './expired-rows.ts';
import { removeExpiredStreamedOutput } from './expired-streamed-output.ts';
import { endFarPauses } from './far-pauses.ts';
import { warnOfFullDisk } from './free-space.ts';
import { endIdleUploads } from './idle-uploads.ts';
import { removeOldJobs } from './job-retention.ts';
import { countJobs } from './job-statistics.ts';
import { OrphanCollector } from './orphaned-objects.ts';
import { DeletionSweep } from './pending-deletions.ts';
import { forgetLeftoverRuns, removeOldSessions } from './session-retention.ts';
import {
  cancelJobsOfEndedSessions,
  cancelJobsOfSessionsEndedBefore,
  endIdleSessions,
  endUnopenedSessions,
  eraseCredentials,
} from './sessions.ts';
import { addStorageChanges, countStorage, forgetStorageOfRemoved } from './user-storage.ts';
import { evictUnusedViews } from './view-eviction.ts';
import { removeOldDeliveries } from './webhook-retention.ts';

/** Safe to repeat, and to run concurrently with any step, itself included, in another worker. */
interface UpkeepStep {
  name: string;
  /**
   * Milliseconds from the end of one run to the start of the next: 400 where something must happen within a second, 20,000
   * where within two minutes.
   */
  every: number;
  /** Like `every`, after a run that failed. Default: `every`. */
  everyFailed?: number;
  run(): Promise<void>;
}

/** Starts are spread, so that steps seldom overlap and mostly share one database connection. */
const SPREAD_MS = 300;

/** Ends what has timed out, and removes what nobody can request any more, until the process stops. */
export async function runUpkeep(context: WorkerContext): Promise<void> {
  await runSteps(listSteps(context), context);
}

function listSteps(context: WorkerContext): UpkeepStep[] {
  const orphans = new OrphanCollector(context);
  const caches = new CacheLimiter(context);
  const sweep = new DeletionSweep(context);
  return [
    { name: 'audit chain', every: 400, everyFailed: 5_000, run: () => appendAudit(context) },
    { name: 'idle sessions', every: 5_000, run: () => endIdleSessions(context) },
    { name: 'unopened sessions', every: 5_000, run: () => endUnopenedSessions(context) },
    { name: 'jobs of ended sessions', every: 5_000, run: () => cancelJobsOfEndedSessions(context) },
    { name: 'credentials', every: 5_000, run: () => eraseCredentials(context) },
    { name: 'dead workers', every: 5_000, run: () => removeDeadWorkers(context) },
    { name: 'deleted projects', every: 5_000, run: () => purgeDeletedProjects(context) },
    { name: 'idle uploads', every: 5_000, run: () => endIdleUploads(context) },
    { name: 'pending deletions', every: 5_000, run: () => sweep.run() },
    { name: 'orphaned objects', every: 5_000, run: () => orphans.markSome() },
    { name: 'caches', every: 5_000, run: () => caches.limitSome() },
    { name: 'free space', every: 5_000, run: warnOfFullDisk(context) },
    { name: 'storage changes', every: 5_000, run: () => addStorageChanges(context) },
    { name: 'storage of users', every: 20_000, run: () => countStorage(context) },
    { name: 'old jobs', every: 20_000, run: () => removeOldJobs(context) },
    { name: 'job statistics', every: 20_000, run: () => countJobs(context) },
    { name: 'old sessions', every: 20_000, run: () => removeOldSessions(context) },
    { name: 'old audit entries', every: 20_000, run: () => removeOldAudit(context) },
    { name: 'webhook deliveries', every: 300_000, run: () => removeOldDeliveries(context) },
    {
      name: 'jobs of sessions that ended before',
      every: 300_000,
      run: () => cancelJobsOfSessionsEndedBefore(context),
    },
    { name: 'leftover runs', every: 300_000, run: () => forgetLeftoverRuns(context) },
    { name: 'idempotency keys', every: 300_000, run: () => removeExpiredIdempotencyKeys(context) },
    { name: 'logins', every: 300_000, run: () => removeExpiredLogins(context) },
    { name: 'segments of videos', every: 300_000, run: () => removeSegmentsOfEndedVideos(context) },
    { name: 'frames of videos', every: 300_000, run: () => removeFramesOfEndedVideos(context) },
    { name: 'streamed output', every: 300_000, run: () => removeExpiredStreamedOutput(context) },
    { name: 'pauses', every: 20_000, run: () => endFarPauses(context) },
    { name: 'removed users', every: 20_000, run: () => forgetStorageOfRemoved(context) },
    { name: 'views', every: 300_000, run: () => evictUnusedViews(context) },
  ];
}

/** Runs each step in a loop of its own, so that one that fails or hangs does not stop the others. */
export async function runSteps(
  steps: UpkeepStep[],
  { log, stopping }: Pick<WorkerContext, 'log' | 'stopping'>,
): Promise<void> {
  const repeat = async ({ name, every, everyFailed = every, run }: UpkeepStep, index: number) => {
    await sleep(stopping, index * SPREAD_MS);
    while (!stopping.aborted) {
      let pause = every;
      try {
        await run();
      } catch (error) {
        log[failureLevel(error)]({ err: error, step: name }, 'a step of upkeep failed');
        pause = everyFailed;
      }
      await sleep(stopping, pause);
    }
  };
  await Promise.all(steps.map(repeat));
}
