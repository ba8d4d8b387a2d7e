import { and, eq, inArray, isNull, ne, sql } from 'drizzle-orm';
import type { PgInsertValue } from 'drizzle-orm/pg-core';
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
import {
  chargeStorage,
  growthOf,
  type StorageGrowth,
  type StorageLimits,
} from '../../shared/quotas/storage-limits.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import { removeParts } from '../../shared/uploads/uploads.ts';
import { type PackedColumns, unpackColumns } from './kept-statistics.ts';
import type { MadeArtifact } from './parser.ts';

/** Limits of one statement, which must end in time: artifacts, and bytes of their statistics. */
const BATCH = 100;
const BATCH_BYTES = 8 << 20;

export interface PromotedArtifact extends Omit<MadeArtifact, 'columns' | 'skipped'> {
  /** The name in the upload's `aids` of the file that it was made of. */
  madeOf: string;
  columns?: PackedColumns;
}

interface Promotion {
  upload: UploadRow;
  project: string;
  made: PromotedArtifact[];
  skipped?: SkippedRows;
  limits: StorageLimits;
}

/**
 * Adds the artifacts to the model in the transaction that ends the job; replaces those of the same name and kind, and all
 * that an earlier upload made under the same names in `aids`. Removes the upload's parts; an object that became an
 * artifact's is kept by the artifact's row.
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
  if (!model) throw new Error('the locked model is gone');
  const growth: StorageGrowth = { added: 0, addedByUser: 0 };
  for (const batch of batches(made)) {
    const more = await putArtifacts(tx, { upload, made: batch, version: model.version });
    growth.added += more.added;
    growth.addedByUser += more.addedByUser;
  }
  const removed = await removeEarlier(tx, upload, model.version);
  growth.added -= removed.added;
  growth.addedByUser -= removed.addedByUser;
  await tx
    .update(models)
    .set({ bytes: sql`${models.bytes} + ${growth.added}` })
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
  // Those counted for the same user.
  const parts = sent?.bytes ?? 0;
  growth.added -= parts;
  growth.addedByUser -= parts;
  await chargeStorage(tx, { project, user: upload.owner, ...growth, limits });
}

function* batches(made: PromotedArtifact[]): Generator<PromotedArtifact[]> {
  let batch: PromotedArtifact[] = [];
  let bytes = 0;
  for (const artifact of made) {
    const more = artifact.columns?.bytes ?? 0;
    if (batch.length === BATCH || (batch.length > 0 && bytes + more > BATCH_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(artifact);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
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
    detail: 'the model or its upload was deleted while it was parsed.',
    hint: 'Make a new upload for another model.',
  });
}

/**
 * Inserts or replaces artifacts; returns by how many bytes the model and the user grew. They get the model's version,
 * which is never reused, even after a deletion.
 */
async function putArtifacts(
  tx: Tx,
  given: { upload: UploadRow; made: PromotedArtifact[]; version: number },
): Promise<StorageGrowth> {
  const { upload, made, version } = given;
  const { model, input, owner: storedBy } = upload;
  const names = made.map(({ aid }) => aid);
  const found = await tx
    .select({
      aid: artifacts.aid,
      kind: artifacts.kind,
      object: artifacts.object,
      size: artifacts.size,
      storedBy: artifacts.storedBy,
    })
    .from(artifacts)
    .where(and(eq(artifacts.model, model), inArray(artifacts.aid, names)));
  const before = new Map(found.map(row => [row.aid, row]));
  const added: PgInsertValue<typeof artifacts>[] = [];
  const growth: StorageGrowth = { added: 0, addedByUser: 0 };
  for (const artifact of made) {
    const { aid, kind, object, size, madeOf, rows = null, columns, dialect = null } = artifact;
    const old = before.get(aid);
    if (old && old.kind !== kind)
      throw new WindlassError('conflict', {
        detail: `the model has a ${old.kind} named ${aid} already.`,
        hint: `Choose another name in "aids", or DELETE /api/models/(mid)/${old.kind}s/(aid) first.`,
      });
    const values = {
      kind,
      object,
      size,
      rows,
      // As text: it need not be parsed here.
      columns: columns ? sql`${await unpackColumns(columns)}::text::jsonb` : null,
      dialect,
      madeOf,
      version,
      input,
      storedBy,
    };
    const { added: more, addedByUser } = growthOf({ size, storedBy }, old);
    growth.added += more;
    growth.addedByUser += addedByUser;
    if (old)
      await tx
        .update(artifacts)
        .set({ ...values, updated: sql`now()` })
        .where(and(eq(artifacts.model, model), eq(artifacts.aid, aid)));
    else added.push({ model, aid, ...values });
  }
  if (added.length > 0) await tx.insert(artifacts).values(added);
  await scheduleDeletion(
    tx,
    found.map(({ object }) => object),
  );
  return growth;
}

/**
 * Removes what earlier uploads made of the files of these names and this one did not make again, such as a table for a
 * length that no dataset has any more. Returns by how many bytes the model and the user shrank.
 */
async function removeEarlier(
  tx: Tx,
  { model, aids, owner }: UploadRow,
  version: number,
): Promise<StorageGrowth> {
  const gone = await tx
    .delete(artifacts)
    .where(
      and(
        eq(artifacts.model, model),
        inArray(artifacts.madeOf, aids),
        // What was made now has the model's version.
        ne(artifacts.version, version),
      ),
    )
    .returning({ object: artifacts.object, size: artifacts.size, storedBy: artifacts.storedBy });
  await scheduleDeletion(
    tx,
    gone.map(({ object }) => object),
  );
  const bytesOf = (rows: typeof gone) => rows.reduce((sum, { size }) => sum + size, 0);
  return {
    added: bytesOf(gone),
    addedByUser: bytesOf(gone.filter(({ storedBy }) => storedBy === owner)),
  };
}
