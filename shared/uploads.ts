import { and, count, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Tx } from './database/connect.ts';
import { jobs, members, models, parts, projects, uploads } from './database/schema.ts';
import { WindlassError } from './errors.ts';
import { requestCancel } from './jobs/cancel.ts';
import { chargeProjectQuota } from './project-quota.ts';
import { scheduleDeletion } from './storage/pending-deletions.ts';

/** Files of an upload, and so artifacts that it names. */
export const MAX_FILES = 1_000;
/** Parts of an upload, all files together; `part` is below it too. */
export const MAX_PARTS = 10_000;

/** Which part of which file; both count from 0. */
export interface PartKey {
  upload: string;
  file: number;
  part: number;
}

/** A part that lies whole in the object store. `digest` is its SHA-256 in base64. */
export interface StoredPart extends PartKey {
  size: number;
  digest: string;
  object: string;
}

export type UploadFound = Awaited<ReturnType<typeof selectUpload>>[number];

/** The upload with its project, while project and model are there and the owner has a part in them. */
export function selectUpload(tx: Tx, uid: string) {
  return tx
    .select({ upload: uploads, project: projects.pid, role: members.role })
    .from(uploads)
    .innerJoin(models, eq(models.mid, uploads.model))
    .innerJoin(projects, and(eq(projects.pid, models.project), isNull(projects.deleted)))
    .innerJoin(members, and(eq(members.project, projects.pid), eq(members.username, uploads.owner)))
    .where(eq(uploads.uid, uid));
}

/** Holds the upload for the rest of the transaction, for writing it or below it. Throws `not_found`. */
export async function lockUpload(tx: Tx, uid: string): Promise<UploadFound> {
  const [found] = await selectUpload(tx, uid).for('update', { of: uploads });
  if (!found) throw unknownUpload();
  return found;
}

/** Throws unless parts may still be sent: `conflict` after finished, `forbidden` where the owner may not write. */
export function assertUploadOpen({ upload, role }: Pick<UploadFound, 'upload' | 'role'>): void {
  if (role === 'reader') {
    throw new WindlassError('forbidden', {
      detail: 'Forbidden: you are a reader of this project, and this needs a writer.',
      hint: 'Ask one of the administrators of the project.',
    });
  }
  if (upload.job === null) return;
  throw new WindlassError('conflict', {
    detail: 'Conflict: the upload was finished, and takes no more parts.',
    hint: 'Begin another upload with POST /api/uploads.',
  });
}

/**
 * Makes a stored part one of its upload's, in place of an older one. Throws `not_found` where the upload is gone,
 * `conflict` where it was finished meanwhile, `insufficient_storage` where its project would keep more than `limit` bytes,
 * and what assertPartLimit() throws: the object is then nobody's. An object is committed once: after it was replaced it may be
 * gone. Nothing else may be locked afterwards; see chargeProjectQuota().
 */
export async function commitPart(tx: Tx, stored: StoredPart, limit: number): Promise<void> {
  const found = await lockUpload(tx, stored.upload);
  assertUploadOpen(found);
  const which = and(
    eq(parts.upload, stored.upload),
    eq(parts.file, stored.file),
    eq(parts.part, stored.part),
  );
  const replaced = await tx
    .delete(parts)
    .where(which)
    .returning({ object: parts.object, size: parts.size });
  const added = stored.size - replaced.reduce((sum, { size }) => sum + size, 0);
  await assertPartLimit(tx, stored);
  await tx.insert(parts).values(stored);
  await scheduleDeletion(
    tx,
    replaced.map(row => row.object),
  );
  await tx
    .update(uploads)
    .set({
      bytes: sql`${uploads.bytes} + ${added}`,
      version: sql`${uploads.version} + 1`,
      accessed: sql`now()`,
    })
    .where(eq(uploads.uid, stored.upload));
  await chargeProjectQuota(tx, { project: found.project, added, limit });
}

/** Bytes of a part that has arrived, else 0. */
export async function findPartSize(db: Tx, { upload, file, part }: PartKey): Promise<number> {
  const [row] = await db
    .select({ size: parts.size })
    .from(parts)
    .where(and(eq(parts.upload, upload), eq(parts.file, file), eq(parts.part, part)));
  return row?.size ?? 0;
}

/** Throws `invalid_input` where the upload has as many parts as it may, without this one. */
export async function assertPartLimit(tx: Tx, { upload, file, part }: PartKey): Promise<void> {
  const others = sql`(${parts.file}, ${parts.part}) <> (${file}::int, ${part}::int)`;
  const [row] = await tx
    .select({ n: count() })
    .from(parts)
    .where(and(eq(parts.upload, upload), others));
  if ((row?.n ?? 0) < MAX_PARTS) return;
  const problem = `an upload has at most ${MAX_PARTS} parts, all files together`;
  throw new WindlassError('invalid_input', {
    detail: `Invalid parameters: part: ${problem}.`,
    hint: 'Send larger parts: one may have 5 GiB.',
    extra: { fields: [{ field: 'part', problem }] },
  });
}

/** Notes that bytes are on their way, so that the upload is not idle; written at most once in `seconds`. Never fails. */
export async function touchUpload(db: Tx, uid: string, seconds: number): Promise<void> {
  await db
    .update(uploads)
    .set({ accessed: sql`now()` })
    .where(
      and(
        eq(uploads.uid, uid),
        isNull(uploads.job),
        sql`${uploads.accessed} < now() - make_interval(secs => ${seconds})`,
      ),
    )
    .catch(() => {});
}

/** How often the bytes of an upload that ends when idle for so long are noted, in seconds. */
export const touchIntervalSeconds = (idleSeconds: number) => Math.min(60, idleSeconds / 4);

/** Lets go of the parts of uploads that the caller holds. */
export async function removeParts(tx: Tx, uids: string[]): Promise<void> {
  const removed = await tx
    .delete(parts)
    .where(inArray(parts.upload, uids))
    .returning({ object: parts.object });
  await scheduleDeletion(
    tx,
    removed.map(row => row.object),
  );
  await tx.update(uploads).set({ bytes: 0 }).where(inArray(uploads.uid, uids));
}

/** Removes an upload that the caller holds, with its parts, and cancels its copies, whose ids it returns. */
export async function removeUpload(tx: Tx, uid: string): Promise<string[]> {
  await removeParts(tx, [uid]);
  await tx.delete(uploads).where(eq(uploads.uid, uid));
  return requestCancel(tx, eq(jobs.upload, uid));
}

export function unknownUpload(): WindlassError {
  return new WindlassError('not_found', {
    detail: 'Not found: there is no such upload session.',
    hint: 'GET /api/uploads lists yours.',
  });
}
