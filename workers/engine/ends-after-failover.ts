import { LRUCache } from 'lru-cache';
import type { JobRow } from '../../shared/database/schema.ts';
import { findDefinition } from '../../shared/jobs/catalog.ts';
import { runEndLost } from '../../shared/jobs/run-intent.ts';
import type { JobEnd } from './end-jobs.ts';

/** What is written to a job that had ended: the same end, or else what its row tells of its run on a host. */
export interface RememberedEnd {
  ending?: JobEnd;
  run?: Pick<JobRow, 'runAt' | 'runPlace' | 'runRemoved'>;
}

/** A failover undoes the ends of its last seconds. */
const MAX_ENDS = 10_000;

/**
 * Ends of this worker that an asynchronous failover may undo, of jobs that must not be done again: hosts forget runs, and a
 * file may be another one since.
 */
export class EndsAfterFailover {
  /** By job, which may be given back under an earlier token. */
  readonly #ends = new LRUCache<string, RememberedEnd>({ max: MAX_ENDS });

  /** Call after the end of a job is committed. */
  remember(job: JobRow, ending: JobEnd): void {
    const { changesFile, runsOnce } = findDefinition(job.kind) ?? {};
    if (changesFile) this.#ends.set(job.id, { ending });
    else if (runsOnce && job.runAt !== null) this.#ends.set(job.id, { run: runEndLost(job) });
  }

  /** How the job ended here before, if it did: a failover may have lost that end, and the claim before it. */
  find(job: string): RememberedEnd | undefined {
    return this.#ends.get(job);
  }
}
