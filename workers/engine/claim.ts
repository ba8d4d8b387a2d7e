import { and, eq } from 'drizzle-orm';
import { jobs } from '../../shared/database/schema.ts';
import { isOpenById } from '../../shared/jobs/job-conditions.ts';

/** A claimed job and its fencing token: every write checks the token, and a write with an old one changes nothing. */
export interface Claim {
  id: string;
  token: string;
}

/** Thrown when a write finds that another worker has the lease, or nobody: the work must stop. */
export class LeaseRevoked extends Error {
  constructor(id: string) {
    super(`the lease of job ${id} was revoked`);
    this.name = 'LeaseRevoked';
  }
}

export const leasedBy = ({ id, token }: Claim) =>
  and(eq(jobs.id, id), eq(jobs.leaseToken, token), isOpenById);
