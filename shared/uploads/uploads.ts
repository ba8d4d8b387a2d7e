import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { jobs, members, models, parts, projects, uploads } from '../database/schema.ts';
import { conflict, forbidden, notFound, WindlassError } from '../errors/errors.ts';
import { cancelJobsOf } from '../jobs/cancel.ts';
import { chargeStorage, type StorageLimits } from '../quotas/storage-limits.ts';
import { scheduleDeletion } from '../storage/pending-deletions.ts';

/** Files of an upload, at most; each becomes an artifact. */
export const MAX_FILES = 1_000;
/** The most parts of an upload, of all files together; also the limit on the index of a part. */
export const MAX_PARTS = 100_000;

/** A part of a file; both indexes count from 0. */
interface PartKey {
  upload: string;
  file: number;
  part: number;
}

const isPart = ({ upload, file, part }: PartKey) =>
  and(eq(parts.upload, upload), eq(parts.file, file), eq(parts.part, part));

/** A part in the object store. `digest` is its SHA-256 in base64. */
export interface StoredPart extends PartKey {
  size: number;
  digest: string;
  object: string;
}

export type UploadFound = Awaited<ReturnType<typeof selectUpload>>[number];

/** The upload with its project and the owner's role; no row when project or model is gone, or the owner is no member. */
export function selectUpload(tx: Tx, uid: string) {
  return tx
    .select({ upload: uploads, project: projects.pid, role: members.role })
    .from(uploads)
    .innerJoin(models, eq(models.mid, uploads.model))
    .innerJoin(projects, and(eq(projects.pid, models.project), isNull(projects.deleted)))
    .innerJoin(members, and(eq(members.project, projects.pid), eq(members.username, uploads.owner)))
    .where(eq(uploads.uid, uid));
}

/** Locks the upload until the transaction ends, for writing it or below it. Throws `not_found`. */
export async function lockUpload(tx: Tx, uid: string): Promise<UploadFound> {
  const [found] = await selectUpload(tx, uid).for('update', { of: uploads });
  if (!found) throw unknownUpload();
  return found;
}

/** Throws unless parts may still be sent: `conflict` after finished, `forbidden` when the owner may no longer write. */
export function assertUploadOpen({ upload, role }: Pick<UploadFound, 'upload' | 'role'>): void {
  if (role === 'reader') {
    throw forbidden(
      'you are a reader of this project, and this needs a writer.',
      'Ask one of the administrators of the project.',
    );
  }
  if (upload.job === null) return;
  throw conflict(
    'the upload was finished and takes no more parts.',
    'Begin another upload with POST /api/uploads. If its job failed, POST /api/jobs/(id)/retry parses the same parts again.',
  );
}

/**
 * Inserts the row of a stored part, in place of an older one. When it throws (`not_found`, `conflict` after finished,
 * `insufficient_storage`, `invalid_input` beyond MAX_PARTS), no row refers to the object. Commit an object once: a
 * replacement may delete it. Lock nothing afterwards: see chargeStorage().
 */
export async function commitPart(tx: Tx, stored: StoredPart, limits: StorageLimits): Promise<void> {
  const found = await lockUpload(tx, stored.upload);
  assertUploadOpen(found);
  const replaced = await tx
    .delete(parts)
    .where(isPart(stored))
    .returning({ object: parts.object, size: parts.size });
  const added = stored.size - replaced.reduce((sum, { size }) => sum + size, 0);
  if (found.upload.parts - replaced.length >= MAX_PARTS) throw tooManyParts();
  await tx.insert(parts).values(stored);
  await scheduleDeletion(
    tx,
    replaced.map(row => row.object),
  );
  await tx
    .update(uploads)
    .set({
      bytes: sql`${uploads.bytes} + ${added}`,
      parts: found.upload.parts - replaced.length + 1,
      version: sql`${uploads.version} + 1`,
      accessed: sql`now()`,
    })
    .where(eq(uploads.uid, stored.upload));
  await chargeStorage(tx, { project: found.project, user: found.upload.owner, added, limits });
}

/** The size of a stored part in bytes, else undefined. */
export async function findPartSize(db: Tx, key: PartKey): Promise<number | undefined> {
  const [row] = await db.select({ size: parts.size }).from(parts).where(isPart(key));
  return row?.size;
}

/** Throws `invalid_input` when the upload has MAX_PARTS other parts. */
export async function assertPartLimit(
  tx: Tx,
  { upload }: Pick<UploadFound, 'upload'>,
  { file, part }: Pick<PartKey, 'file' | 'part'>,
): Promise<void> {
  if (upload.parts < MAX_PARTS) return;
  const isReplaced = (await findPartSize(tx, { upload: upload.uid, file, part })) !== undefined;
  if (!isReplaced) throw tooManyParts();
}

function tooManyParts(): WindlassError {
  const problem = `an upload has at most ${MAX_PARTS} parts, all files together`;
  return new WindlassError('invalid_input', {
    detail: `part: ${problem}.`,
    hint: 'Send larger parts. LIMIT_PART_BYTES says how large one may be.',
    extra: { fields: [{ field: 'part', problem }] },
  });
}

/** Removes all parts of uploads that the caller has locked. */
export async function removeParts(tx: Tx, uids: string[]): Promise<void> {
  const removed = await tx
    .delete(parts)
    .where(inArray(parts.upload, uids))
    .returning({ object: parts.object });
  await scheduleDeletion(
    tx,
    removed.map(row => row.object),
  );
  await tx.update(uploads).set({ bytes: 0, parts: 0 }).where(inArray(uploads.uid, uids));
}

/** Removes an upload that the caller has locked, with its parts. Cancels its copy jobs and returns their ids. */
export async function removeUpload(tx: Tx, uid: string): Promise<string[]> {
  await removeParts(tx, [uid]);
  await tx.delete(uploads).where(eq(uploads.uid, uid));
  return cancelJobsOf(tx, eq(jobs.upload, uid));
}

export const unknownUpload = () =>
  notFound('there is no such upload session.', 'GET /api/uploads lists yours.');
