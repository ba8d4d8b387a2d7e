import { asc, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { type JobRow, jobs, parts, type UploadRow } from '../../shared/database/schema.ts';
import type { JobState } from '../../shared/jobs/job-states.ts';
import { MAX_PARTS } from '../../shared/uploads/uploads.ts';
import { entityTag } from '../http/conditional-requests.ts';

const state = z.enum(['open', 'parsing', 'done', 'failed']);
const reason = z
  .looseObject({
    file: z.number().int().optional(),
    row: z.number().int().optional(),
    column: z.union([z.string(), z.number()]).optional(),
    reason: z.string(),
  })
  .meta({ id: 'RowError' });

/** What was left out of a file whose other rows were kept. */
export const skippedRows = z.object({ count: z.number().int(), errors: z.array(reason) }).meta({
  id: 'SkippedRows',
  description:
    'Malformed rows that were left out, up to the "tolerance"; the first hundred are listed.',
});

/** An upload in a list, without members whose size a client chooses. */
export const uploadSummary = z
  .object({
    id: z.string(),
    mid: z.string(),
    parser: z.string(),
    input: z.boolean(),
    state,
    created: z.date(),
    accessed: z.date(),
    job: z.string().optional(),
  })
  .meta({ id: 'UploadSummary' });

export const uploadRecord = uploadSummary
  .extend({
    aids: z.array(z.string()),
    parts: z
      .array(
        z
          .object({
            fid: z.number().int(),
            pid: z.number().int(),
            size: z.number().int(),
            digest: z.string(),
          })
          .meta({ id: 'UploadPart' }),
      )
      .meta({ description: 'Parts received; `digest` is the SHA-256 in base64.' }),
    error: z
      .object({ message: z.string(), errors: z.array(reason) })
      .meta({ id: 'UploadError' })
      .optional(),
    skipped: skippedRows.optional(),
  })
  .meta({ id: 'Upload' });

type State = z.output<typeof state>;
/** The columns of an upload's job; when that has no record any more, what stays of it is in the upload's `parseEnd`. */
export type ParseJob = Pick<JobRow, 'state' | 'version' | 'error'>;

/** The validator of an upload: another one after each part that is stored. */
export const tagOf = (version: number, job: ParseJob | null): string =>
  entityTag(job ? `${version}.${job.version}-${job.state}` : version);

export const parseJobColumns = { state: jobs.state, version: jobs.version, error: jobs.error };

/** An upload's state is its job's. */
export function uploadState(
  upload: Pick<UploadRow, 'job'>,
  job: JobState | null | undefined,
): State {
  if (upload.job === null) return 'open';
  if (job === 'succeeded') return 'done';
  return job === 'queued' || job === 'running' ? 'parsing' : 'failed';
}

export function toUploadSummary(
  upload: Pick<UploadRow, 'uid' | 'model' | 'parser' | 'input' | 'job' | 'created' | 'accessed'>,
  job: JobState | null | undefined,
): z.output<typeof uploadSummary> {
  return {
    id: upload.uid,
    mid: upload.model,
    parser: upload.parser,
    input: upload.input,
    state: uploadState(upload, job),
    created: upload.created,
    accessed: upload.accessed,
    ...(upload.job === null ? {} : { job: upload.job }),
  };
}

export function toUploadRecord(
  upload: UploadRow,
  job: ParseJob | null,
  stored: z.output<typeof uploadRecord>['parts'],
): z.output<typeof uploadRecord> {
  const error = job?.error;
  const errors = z.array(reason).safeParse(error?.errors);
  return {
    ...toUploadSummary(upload, job?.state),
    aids: upload.aids,
    parts: stored,
    ...(error ? { error: { message: error.detail, errors: errors.data ?? [] } } : {}),
    ...(upload.skipped ? { skipped: upload.skipped } : {}),
  };
}

/** The parts received, in order; at most MAX_PARTS. */
export async function readParts(tx: Tx, uid: string) {
  return tx
    .select({ fid: parts.file, pid: parts.part, size: parts.size, digest: parts.digest })
    .from(parts)
    .where(eq(parts.upload, uid))
    .orderBy(asc(parts.file), asc(parts.part))
    .limit(MAX_PARTS);
}
