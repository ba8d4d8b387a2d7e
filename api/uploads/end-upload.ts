import { eq } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, type UploadRow, uploads } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors/errors.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { lockUpload, removeUpload } from '../../shared/uploads/uploads.ts';
import type { ApiContext } from '../context.ts';
import { bumpModel, lockModel } from '../projects/access.ts';
import { findUpload, type UploadKey } from './find-upload.ts';
import { type ParseJob, parseJobColumns, uploadState } from './upload-record.ts';

/** Abandons an upload: removes its parts and cancels its copies. `check` may throw for the record as it is. */
export async function endUpload(
  api: ApiContext,
  key: UploadKey,
  check: (version: number, job: ParseJob | null) => void = () => {},
): Promise<void> {
  const cancelled = await api.database.db.transaction(async tx => {
    const found = await findUpload(tx, key);
    // The model's record shows its parses, and one may disappear.
    await lockModel(tx, found.upload.model, { username: key.owner, role: 'reader' });
    const { upload } = await lockUpload(tx, key.uid);
    const job = await findParseJob(tx, upload);
    check(upload.version, job);
    if (uploadState(upload, job?.state) === 'parsing') throw isParsing(upload.job);
    if (upload.job !== null) await bumpModel(tx, upload.model);
    return removeUpload(tx, key.uid);
  });
  publishCancelled(api, cancelled);
}

/** The upload's parse, or what stays of it. */
export async function findParseJob(tx: Tx, upload: UploadRow): Promise<ParseJob | null> {
  if (upload.job === null || upload.parseEnd !== null) return upload.parseEnd;
  const [job] = await tx.select(parseJobColumns).from(jobs).where(eq(jobs.id, upload.job));
  if (job) return job;
  // It was removed just now.
  const [now] = await tx
    .select({ parseEnd: uploads.parseEnd })
    .from(uploads)
    .where(eq(uploads.uid, upload.uid));
  return now?.parseEnd ?? null;
}

const isParsing = (job: string | null) =>
  conflict(
    'the upload is being parsed.',
    `Wait for its job, or cancel that with DELETE /api/jobs/${job}.`,
  );
