import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import { uploads } from '../../shared/database/schema.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { removeParts, removeUpload } from '../../shared/uploads.ts';
import type { WorkerContext } from '../context.ts';

/** Uploads at a time: each may have 10,000 parts. */
const BATCH = 50;

/** Ends uploads that nothing was sent to for long, and lets go of the parts of those that have ended. */
export async function endIdleUploads(context: WorkerContext): Promise<void> {
  while (!context.stopping.aborted && (await endSome(context)) === BATCH);
  while (!context.stopping.aborted && (await releaseSome(context)) === BATCH);
}

const longAgo = ({ config }: WorkerContext) =>
  sql`now() - make_interval(secs => ${config.UPLOAD_IDLE_TIMEOUT})`;

/** Each in a transaction of its own, looked at again once it is held: a part may just have come. */
async function endSome(context: WorkerContext): Promise<number> {
  const { db } = context.database;
  const isIdle = and(isNull(uploads.job), sql`${uploads.accessed} < ${longAgo(context)}`);
  const found = await db.select({ uid: uploads.uid }).from(uploads).where(isIdle).limit(BATCH);
  for (const { uid } of found) {
    const cancelled = await db.transaction(async tx => {
      const [held] = await tx
        .select({ uid: uploads.uid })
        .from(uploads)
        .where(and(eq(uploads.uid, uid), isIdle))
        .for('update');
      return held ? removeUpload(tx, uid) : [];
    });
    publishCancelled(context, cancelled);
  }
  return found.length;
}

/**
 * The record stays, as what the model tells of its parses. Uploads are found by the parts there are, stepping through
 * their index from one upload to the next: the records of years are not looked at.
 */
async function releaseSome(context: WorkerContext): Promise<number> {
  const { db } = context.database;
  const found = await db.execute<{ uid: string }>(sql`
    with recursive holding (uid) as (
      (select upload from upload_parts order by upload limit 1)
      union all
      select (select upload from upload_parts where upload > holding.uid order by upload limit 1)
      from holding where holding.uid is not null
    )
    select uploads.uid from holding
    join uploads on uploads.uid = holding.uid
    join jobs on jobs.id = uploads.job
    where jobs.finished < ${longAgo(context)}
    limit ${BATCH}`);
  for (const { uid } of found) {
    await db.transaction(async tx => {
      const [held] = await tx
        .select({ uid: uploads.uid })
        .from(uploads)
        .where(and(eq(uploads.uid, uid), isNotNull(uploads.job)))
        .for('update');
      if (!held) return;
      await removeParts(tx, [uid]);
      await tx
        .update(uploads)
        .set({ version: sql`${uploads.version} + 1` })
        .where(eq(uploads.uid, uid));
    });
  }
  return found.length;
}
