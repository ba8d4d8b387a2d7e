import { and, count, eq, isNull, max, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { jobs, parts, type UploadRow, uploads } from '../../shared/database/schema.ts';
import { conflict, WindlassError } from '../../shared/errors/errors.ts';
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
  const { found, project } = await lockWithModel(tx, { uid, owner });
  assertUploadOpen(found);
  check(found.upload.version);
  await assertNoCopies(tx, uid);
  if (!(await hasCounts(tx, uid, uploaded)))
    assertCounts(compareParts(uploaded, await readParts(tx, uid)));
  return beginParse(tx, found.upload, project);
}

/**
 * Begins another parse of the same parts, in the transaction that starts its job. `ended` is the parse that did not succeed:
 * of several repetitions of it only the first begins one.
 */
export async function parseAgain(tx: Tx, key: UploadKey, ended: string): Promise<RequestedJob> {
  const { found, project } = await lockWithModel(tx, key);
  const { upload } = found;
  if (upload.job !== ended)
    throw conflict(
      `job ${upload.job} parses the upload by now.`,
      `GET /api/uploads/${upload.uid} shows what became of it.`,
    );
  if (!(await rowExists(tx, parts, eq(parts.upload, upload.uid))))
    throw conflict(
      'the parts of the upload are not kept any more.',
      'Upload the files again, beginning with POST /api/uploads. UPLOAD_IDLE_TIMEOUT says how long parts are kept.',
    );
  return beginParse(tx, upload, project);
}

/** Locks the upload and its model, in the order that all transactions use. */
async function lockWithModel(tx: Tx, { uid, owner }: UploadKey) {
  const before = await findUpload(tx, { uid, owner });
  const need = { username: owner, role: 'writer' as const };
  const { project } = await lockModel(tx, before.upload.model, need);
  return { found: await lockUpload(tx, uid), project: project.pid };
}

/** The job takes the place of an earlier one, whose end is told no more. */
async function beginParse(
  tx: Tx,
  { uid, parser, aids, model }: UploadRow,
  project: string,
): Promise<RequestedJob> {
  const job = newId();
  await tx
    .update(uploads)
    .set({ job, parseEnd: null, version: sql`${uploads.version} + 1`, accessed: sql`now()` })
    .where(eq(uploads.uid, uid));
  await bumpModel(tx, model);
  return {
    id: job,
    kind: 'parse',
    label: `${parser}: ${aids.join(', ')}`,
    payload: { upload: uid },
    project,
    model,
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
