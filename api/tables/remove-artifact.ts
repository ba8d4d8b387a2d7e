import { and, eq } from 'drizzle-orm';
import { artifacts } from '../../shared/database/schema.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { ApiContext } from '../context.ts';
import { pathParameter } from '../http/resource.ts';
import { checkObject } from '../http/send-object.ts';
import { bumpModel, lockModel, needRole } from '../projects/access.ts';
import { readArtifactName } from '../projects/artifact-names.ts';
import { type ArtifactRequest, selectStoredArtifact } from './find-artifact.ts';

/**
 * Removes the artifact of this kind that the path names, and answers 204. The lock on the model serializes this with a
 * parse that ends meanwhile. Upkeep removes the views of a table whose source is gone.
 */
export async function removeArtifact(
  api: ApiContext,
  { req, res, kind }: ArtifactRequest,
): Promise<void> {
  const mid = pathParameter(req, 'mid');
  const aid = readArtifactName(pathParameter(req, 'aid'));
  await api.database.db.transaction(async tx => {
    await lockModel(tx, mid, needRole(res, 'writer'));
    const { object, size } = await selectStoredArtifact(tx, { mid, aid, kind });
    await checkObject(api, req, object);
    await tx.delete(artifacts).where(and(eq(artifacts.model, mid), eq(artifacts.aid, aid)));
    await bumpModel(tx, mid, -size);
    await scheduleDeletion(tx, [object]);
  });
  res.status(204).end();
}
