import { z } from 'zod';
import { type JobSummary, jobRecord } from '../../../shared/jobs/job-record.ts';

/** What a server administrator sees of other people's jobs: never command, payload or output. */
export const foreignRecord = jobRecord
  .pick({
    id: true,
    kind: true,
    state: true,
    progress: true,
    host: true,
    owner: true,
    created: true,
    started: true,
    finished: true,
    worker: true,
  })
  .extend({ error: z.object({ code: z.string() }).meta({ id: 'ForeignJobError' }).nullable() })
  .meta({
    id: 'ForeignJob',
    description: 'What a server administrator sees of the jobs of others.',
  });

export const toForeignRecord = (row: JobSummary) => foreignRecord.parse(row);
