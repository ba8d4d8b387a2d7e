import { and, eq, sql } from 'drizzle-orm';
import { artifacts, models } from '../../shared/database/schema.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { ApiContext } from '../context.ts';
import { checkIfMatch } from '../http/conditional-requests.ts';
import { pathParameter } from '../http/resource.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockModel } from '../projects/access.ts';
import { readArtifactName } from '../projects/artifact-names.ts';
import { type ArtifactRequest, objectTag, selectStoredArtifact } from './find-artifact.ts';

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
  const need = { username: currentUser(res).username, role: 'writer' as const };
  await api.database.db.transaction(async tx => {
    await lockModel(tx, mid, need);
    const { object, size } = await selectStoredArtifact(tx, { mid, aid, kind });
    checkIfMatch(req, objectTag(object));
    await tx.delete(artifacts).where(and(eq(artifacts.model, mid), eq(artifacts.aid, aid)));
    await tx
      .update(models)
      .set({
        bytes: sql`${models.bytes} - ${size}`,
        version: sql`${models.version} + 1`,
        updated: sql`now()`,
      })
      .where(eq(models.mid, mid));
    await scheduleDeletion(tx, [object]);
  });
  res.status(204).end();
}
