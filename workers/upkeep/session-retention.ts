import { sql } from 'drizzle-orm';
import { jobs, leftoverRuns, sessions } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';
import { removeInBatches } from './remove-in-batches.ts';

const BATCH = 1_000;
/** After so long a run that could not be removed from its host is forgotten; its files stay there. */
const LEFTOVER_RUN_DAYS = 365;

type Context = Pick<WorkerContext, 'database' | 'stopping'> & {
  config: Pick<WorkerContext['config'], 'JOB_RETENTION_DAYS'>;
};

/**
 * Removes sessions that ended JOB_RETENTION_DAYS ago and have no job left. Looks for the first job of each by the
 * index: with wrong statistics `not exists` becomes a join that reads all jobs.
 */
export async function removeOldSessions({ config, database, stopping }: Context): Promise<void> {
  const days = config.JOB_RETENTION_DAYS;
  if (days === 0) return;
  const old = sql`
    select sid from ${sessions}
    where ended < now() - make_interval(days => ${days}) and sealed is null
      and (select true from ${jobs} where ${jobs.session} = ${sessions.sid} order by ${jobs.finished} limit 1) is null
    order by ended limit ${BATCH} for update skip locked`;
  await removeInBatches(stopping, BATCH, async () => {
    const gone = await database.db
      .delete(sessions)
      .where(sql`${sessions.sid} = any(array(${old}))`)
      .returning({ sid: sessions.sid });
    return gone.length;
  });
}

export async function forgetLeftoverRuns({ database }: Context): Promise<void> {
  const old = sql`
    select id from ${leftoverRuns} where since < now() - make_interval(days => ${LEFTOVER_RUN_DAYS})
    limit ${BATCH} for update skip locked`;
  await database.db.delete(leftoverRuns).where(sql`${leftoverRuns.id} = any(array(${old}))`);
}
