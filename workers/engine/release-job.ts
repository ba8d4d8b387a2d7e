import type { JobRow } from '../../shared/database/schema.ts';

/** Thrown by a handler to release its job: a worker continues it after so many seconds. */
export class ReleaseJob extends Error {
  readonly forSeconds: number;
  /** What else is written of the job. */
  readonly set: Partial<JobRow>;

  constructor(why: string, forSeconds = 0, set: Partial<JobRow> = {}) {
    super(why);
    this.name = 'ReleaseJob';
    this.forSeconds = forSeconds;
    this.set = set;
  }
}
