import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import {
  artifacts,
  models,
  projects,
  type SkippedRows,
  type UploadRow,
  uploads,
} from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { assertWriter } from '../../shared/projects/assert-writer.ts';
import { chargeStorage, type StorageLimits } from '../../shared/quotas/storage-limits.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import { removeParts } from '../../shared/uploads/uploads.ts';
import type { MadeArtifact } from './parser.ts';

interface Promotion {
  upload: UploadRow;
  project: string;
  made: MadeArtifact[];
  skipped?: SkippedRows;
  limits: StorageLimits;
}

/**
 * Adds the artifacts to the model, in the transaction that ends the job; those of the same name and kind are replaced.
 * Removes the upload's parts; an object that has become an artifact's stays, because the artifact's row refers to it.
 */
export async function promoteArtifacts(
  tx: Tx,
  { upload, project, made, skipped, limits }: Promotion,
): Promise<void> {
  await lockTarget(tx, upload, project);
  await assertWriter(tx, { project, username: upload.owner });
  const [model] = await tx
    .update(models)
    .set({ version: sql`${models.version} + 1`, updated: sql`now()` })
    .where(eq(models.mid, upload.model))
    .returning({ version: models.version });
  let added = 0;
  for (const artifact of made)
    added += await putArtifact(tx, { upload, artifact, version: model?.version });
  await tx
    .update(models)
    .set({ bytes: sql`${models.bytes} + ${added}` })
    .where(eq(models.mid, upload.model));
  const [sent] = await tx
    .select({ bytes: uploads.bytes })
    .from(uploads)
    .where(eq(uploads.uid, upload.uid));
  await removeParts(tx, [upload.uid]);
  await tx
    .update(uploads)
    .set({ version: sql`${uploads.version} + 1`, ...(skipped && { skipped }) })
    .where(eq(uploads.uid, upload.uid));
  added -= sent?.bytes ?? 0;
  await chargeStorage(tx, { project, user: upload.owner, added, limits });
}

/** Locks project, model and upload, in the order that all transactions use. A deleted model is in another project. */
async function lockTarget(tx: Tx, upload: UploadRow, project: string): Promise<void> {
  const alive = and(eq(projects.pid, project), isNull(projects.deleted));
  const inProject = and(eq(models.mid, upload.model), eq(models.project, project));
  const isThere =
    (await rowExists(tx, projects, alive, 'share')) &&
    (await rowExists(tx, models, inProject, 'update')) &&
    (await rowExists(tx, uploads, eq(uploads.uid, upload.uid), 'update'));
  if (isThere) return;
  throw new WindlassError('conflict', {
    detail: 'Conflict: the model or its upload was deleted while it was parsed.',
    hint: 'Make a new upload for another model.',
  });
}

/**
 * Inserts or replaces an artifact; returns by how many bytes the model grows. The artifact gets the model's version, which
 * is never reused, even if the artifact was deleted in between.
 */
async function putArtifact(
  tx: Tx,
  given: { upload: UploadRow; artifact: MadeArtifact; version: number | undefined },
): Promise<number> {
  const { upload, artifact, version } = given;
  const { aid, kind, object, size, rows = null, columns = null, dialect = null } = artifact;
  const which = and(eq(artifacts.model, upload.model), eq(artifacts.aid, aid));
  const [before] = await tx
    .select({ kind: artifacts.kind, object: artifacts.object, size: artifacts.size })
    .from(artifacts)
    .where(which);
  if (before && before.kind !== kind)
    throw new WindlassError('conflict', {
      detail: `Conflict: the model has a ${before.kind} named ${aid} already.`,
      hint: `Choose another name in "aids", or DELETE /api/models/(mid)/${before.kind}s/(aid) first.`,
    });
  const { input, owner: storedBy } = upload;
  const values = { kind, object, size, rows, columns, dialect, version, input, storedBy };
  if (before) {
    await tx
      .update(artifacts)
      .set({ ...values, updated: sql`now()` })
      .where(which);
    await scheduleDeletion(tx, [before.object]);
  } else await tx.insert(artifacts).values({ model: upload.model, aid, ...values });
  return size - (before?.size ?? 0);
}
