import { z } from 'zod';
import { JOB_STATES } from '../../../shared/jobs/job-states.ts';
import type { JobSummary } from '../../../shared/jobs/job-view.ts';
import { batchView } from '../../../shared/jobs/payloads/batch.ts';

const state = z.enum(JOB_STATES);
/** Why a job failed; further members belong to the code. */
export const jobErrorRecord = z
  .looseObject({ code: z.string(), detail: z.string(), hint: z.string().optional() })
  .meta({ id: 'JobError' });
export const jobRecord = z
  .object({
    id: z.string(),
    kind: z.string(),
    state,
    label: z.string().nullable().describe('What it is, in one line.'),
    name: z.string().nullable().describe("The client's own."),
    progress: z.number().min(0).max(1).nullable(),
    message: z.string().nullable(),
    host: z.string().nullable(),
    session: z.string().nullable(),
    project: z.string().nullable(),
    model: z.string().nullable(),
    upload: z.string().nullable(),
    owner: z.string(),
    worker: z.string().nullable().describe('The last one that had it.'),
    created: z.date(),
    started: z.date().nullable(),
    finished: z.date().nullable(),
    result: z.unknown(),
    error: jobErrorRecord.nullable(),
    retryOf: z.string().nullable(),
    /** Of a batch job, once it was submitted. */
    batch: batchView.nullable(),
  })
  .meta({ id: 'Job' });
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

/** What a server administrator sees of other people's jobs: never command, payload or output. */
export const foreignView = (row: JobSummary) => foreignRecord.parse(row);
