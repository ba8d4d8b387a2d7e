import type { Database } from '../../shared/database/connect.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import type { QueueEntry } from '../../shared/jobs/queue.ts';
import { LeaseRevoked } from './claim.ts';
import { type ClaimedRow, claimJobs } from './claim-jobs.ts';
import { endJobs, type PendingEnd } from './end-jobs.ts';
import { Grouped } from './grouped.ts';

/** The claims and the ends of one worker, each in groups. */
export class JobGroups {
  readonly #claims: Grouped<QueueEntry & { token: string }, ClaimedRow | undefined>;
  readonly #ends: Grouped<PendingEnd, { hasEnded: boolean; isNotified: boolean }>;

  /** `id` is the worker's. */
  constructor(context: { id: string; database: Database; notifications: Notifications }) {
    const { id, database, notifications } = context;
    this.#claims = new Grouped(
      entries => claimJobs(database.db, entries, { worker: id }),
      entry => entry.id,
    );
    this.#ends = new Grouped(
      ends =>
        notifications.withCommit(async isNotified => {
          const ended = await endJobs(database.db, ends, { notifies: isNotified });
          return ended.map(hasEnded => ({ hasEnded, isNotified }));
        }),
      ({ claim }) => claim.id,
    );
  }

  /** See claimJobs(). */
  claim(entry: QueueEntry, token: string): Promise<ClaimedRow | undefined> {
    return this.#claims.ask({ ...entry, token });
  }

  /**
   * Ends a job that promotes nothing. Returns whether the commit has published the end and the free slot. Throws
   * LeaseRevoked.
   */
  async end(end: PendingEnd): Promise<boolean> {
    const { hasEnded, isNotified } = await this.#ends.ask(end);
    if (!hasEnded) throw new LeaseRevoked(end.claim.id);
    return isNotified;
  }
}
