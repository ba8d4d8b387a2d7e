import { eq, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, type ModelRow, models, projects } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { cancelJobsOf, publishCancelled } from '../../shared/jobs/cancel.ts';
import type { ApiContext } from '../context.ts';
import { checkIfMatch } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { lockModel, needRole } from './access.ts';
import { modelTag, readParseStates } from './model-parses.ts';

/** Hides a model at once and cancels its jobs; upkeep removes what it holds. */
export async function deleteModel(
  api: ApiContext,
  { req, res }: Exchange,
  mid: string,
): Promise<void> {
  const cancelled = await api.database.db.transaction(async tx => {
    const { model } = await lockModel(tx, mid, needRole(res, 'writer'));
    checkIfMatch(req, modelTag(model, await readParseStates(tx, mid)));
    await moveToDeletedProject(tx, model);
    return cancelJobsOf(tx, eq(jobs.model, mid));
  });
  publishCancelled(api, cancelled);
}

/**
 * Its artifacts may be too many for one statement. So the model moves to a project that is marked as deleted from the
 * beginning, which upkeep removes like any other.
 */
async function moveToDeletedProject(tx: Tx, { mid, name }: ModelRow): Promise<void> {
  const tombstone = newId();
  await tx.insert(projects).values({ pid: tombstone, name, deleted: sql`now()` });
  await tx
    .update(models)
    .set({ project: tombstone, version: sql`${models.version} + 1` })
    .where(eq(models.mid, mid));
}
