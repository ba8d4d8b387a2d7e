import { and, eq, isNull, sql } from 'drizzle-orm';
import { rowExists } from '../../shared/database/row-exists.ts';
import { members, models, projects, uploads } from '../../shared/database/schema.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { removeParts, removeUpload } from '../../shared/uploads/uploads.ts';
import type { WorkerContext } from '../context.ts';

type Context = Pick<WorkerContext, 'database' | 'notifications' | 'stopping'> & {
  config: Pick<WorkerContext['config'], 'UPLOAD_IDLE_TIMEOUT'>;
};

/** Uploads in one query: each may have 10,000 parts. */
const BATCH = 50;

/**
 * Removes uploads idle for UPLOAD_IDLE_TIMEOUT, and parts of uploads whose parse ended that long ago. Those whose owner may no
 * longer write the project go at once: they fill it, and none of its members can end them.
 */
export async function endIdleUploads(context: Context): Promise<void> {
  while (!context.stopping.aborted && (await removeSomeUploads(context)) === BATCH);
  while (!context.stopping.aborted && (await removePartsOfSome(context)) === BATCH);
}

/** The upkeep of deleted projects removes the uploads there, whose parts may be too many for one statement. */
const isOfFormerWriter = sql`exists (
  select from ${models} join ${projects} on ${projects.pid} = ${models.project} and ${projects.deleted} is null
  where ${models.mid} = ${uploads.model} and not exists (
    select from ${members} where ${members.project} = ${projects.pid} and ${members.username} = ${uploads.owner}
      and ${members.role} <> 'reader'))`;

const idleSince = ({ config }: Context) =>
  sql`now() - make_interval(secs => ${config.UPLOAD_IDLE_TIMEOUT})`;

/** One transaction each, which checks again under the row's lock: a part may have arrived. */
async function removeSomeUploads(context: Context): Promise<number> {
  const { db } = context.database;
  const isIdle = and(isNull(uploads.job), sql`${uploads.accessed} < ${idleSince(context)}`);
  const found = await db.select({ uid: uploads.uid }).from(uploads).where(isIdle).limit(BATCH);
  for (const { uid } of found) {
    const cancelled = await db.transaction(async tx => {
      const isStillIdle = await rowExists(tx, uploads, and(eq(uploads.uid, uid), isIdle), 'update');
      return isStillIdle ? removeUpload(tx, uid) : [];
    });
    publishCancelled(context, cancelled);
  }
  return found.length;
}

/**
 * Keeps the row of an upload with a parse, which the model's list of parses shows. Finds uploads by a skip scan over the parts'
 * index, one step per upload with parts, so that it reads no rows of the years of uploads without.
 */
async function removePartsOfSome(context: Context): Promise<number> {
  const { db } = context.database;
  const found = await db.execute<{ uid: string; job: string | null }>(sql`
    with recursive with_parts (uid) as (
      (select upload from upload_parts order by upload limit 1)
      union all
      select (select upload from upload_parts where upload > with_parts.uid order by upload limit 1)
      from with_parts where with_parts.uid is not null
    )
    select uploads.uid, uploads.job from with_parts
    join uploads on uploads.uid = with_parts.uid
    left join jobs on jobs.id = uploads.job
    cross join lateral (select coalesce(jobs.finished, (uploads.parse_end ->> 'finished')::timestamptz) as at) ended
    where ended.at < ${idleSince(context)}
      or ((uploads.job is null or ended.at is not null) and ${isOfFormerWriter})
    limit ${BATCH}`);
  for (const { uid, job } of found) {
    const isUpload = eq(uploads.uid, uid);
    const cancelled = await db.transaction(async tx => {
      if (job === null) {
        // It may have been finished, or its owner may write again.
        const isStillOpen = and(isUpload, isNull(uploads.job), isOfFormerWriter);
        return (await rowExists(tx, uploads, isStillOpen, 'update')) ? removeUpload(tx, uid) : [];
      }
      // Another parse may have begun, which needs them.
      const hasEnded = and(isUpload, eq(uploads.job, job));
      if (!(await rowExists(tx, uploads, hasEnded, 'update'))) return [];
      await removeParts(tx, [uid]);
      await tx
        .update(uploads)
        .set({ version: sql`${uploads.version} + 1` })
        .where(isUpload);
      return [];
    });
    publishCancelled(context, cancelled);
  }
  return found.length;
}
