import { and, count, eq, isNull, max, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, parts, uploads } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import { assertUploadOpen, lockUpload } from '../../shared/uploads/uploads.ts';
import type { RequestedJob } from '../jobs/requests/start-requested-job.ts';
import { bumpModel, lockModel } from '../projects/access.ts';
import { type Comparison, compareParts } from './compare-parts.ts';
import { findUpload, type UploadKey } from './find-upload.ts';
import { readParts } from './upload-record.ts';

/** Closes the upload in the transaction that starts its job. `check` is told its version, and may throw. */
export async function acceptUpload(
  tx: Tx,
  { uid, owner }: UploadKey,
  uploaded: number[],
  check: (version: number) => void = () => {},
): Promise<RequestedJob> {
  const before = await findUpload(tx, { uid, owner });
  const { model, project } = await lockModel(tx, before.upload.model, {
    username: owner,
    role: 'writer',
  });
  const found = await lockUpload(tx, uid);
  assertUploadOpen(found);
  check(found.upload.version);
  await assertNoCopies(tx, uid);
  if (!(await hasCounts(tx, uid, uploaded)))
    assertCounts(compareParts(uploaded, await readParts(tx, uid)));
  const job = newId();
  await tx
    .update(uploads)
    .set({ job, version: sql`${uploads.version} + 1`, accessed: sql`now()` })
    .where(eq(uploads.uid, uid));
  await bumpModel(tx, model.mid);
  return {
    id: job,
    kind: 'parse',
    label: `${before.upload.parser}: ${before.upload.aids.join(', ')}`,
    payload: { upload: uid },
    project: project.pid,
    model: model.mid,
    upload: uid,
  };
}

/** Whether each file has as many parts as stated, numbered from 0 on: counted by the database, without reading them. */
async function hasCounts(tx: Tx, uid: string, uploaded: number[]): Promise<boolean> {
  const stored = await tx
    .select({ file: parts.file, n: count(), last: max(parts.part) })
    .from(parts)
    .where(eq(parts.upload, uid))
    .groupBy(parts.file);
  return (
    stored.length === uploaded.length &&
    stored.every(({ file, n, last }) => n === uploaded[file] && last === n - 1)
  );
}

async function assertNoCopies(tx: Tx, uid: string): Promise<void> {
  const [copy] = await tx
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.upload, uid), isNull(jobs.finished)))
    .limit(1);
  if (!copy) return;
  throw new WindlassError('locked', {
    detail: `a part is still being copied, by job ${copy.id}.`,
    hint: `Wait for GET /api/jobs/${copy.id} to end, then send this again.`,
    headers: { 'Retry-After': '2' },
  });
}

function assertCounts({ missing, excess, truncated }: Comparison): void {
  const cut = truncated ? { truncated } : {};
  if (missing.length > 0) {
    throw new WindlassError('upload_incomplete', {
      detail: `${countParts(missing.length, truncated)} not received.`,
      hint: 'Send the parts that "missing" lists as [fid, pid], then this again.',
      extra: { missing, ...(excess.length > 0 ? { excess } : {}), ...cut },
    });
  }
  if (excess.length === 0) return;
  throw new WindlassError('client_confused', {
    detail: `${countParts(excess.length, truncated)} received beyond what "uploaded" states.`,
    hint: 'Send this again with the numbers of parts that were sent; "excess" lists the others as [fid, pid].',
    extra: { excess, ...cut },
  });
}

const countParts = (n: number, truncated: boolean) =>
  `${truncated ? 'more than ' : ''}${n === 1 ? '1 part was' : `${n} parts were`}`;
