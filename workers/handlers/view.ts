import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { and, eq } from 'drizzle-orm';
import { artifacts, views } from '../../shared/database/schema.ts';
import { invalid, WindlassError } from '../../shared/errors/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { assertUserStorage, chargeUserStorage } from '../../shared/quotas/user-storage.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { Handler, JobContext } from '../context.ts';
import { TableError } from '../parsers/table/protocol.ts';
import { runTableChild } from '../parsers/table/run-child.ts';
import { evictViews, lockViews } from '../parsers/table/view-quota.ts';
import { storeScratch, withScratch, writeScratch } from '../sandbox/scratch-dir.ts';

/** Shares of the progress after the table was fetched, and after the view was made. */
const FETCHED = 0.2;
const MADE = 0.9;

/** Makes a sorted, filtered or grouped copy of a table, which becomes visible as a whole with the job's end. */
const view: Handler<'view'> = async context => {
  const { payload, job, worker } = context;
  const { made, tableSize } = await makeView(context);
  return {
    result: made,
    promote: async tx => {
      const which = and(eq(views.id, payload.view), eq(views.job, job.id));
      await lockViews(tx, payload.source);
      const [before] = await tx
        .select({ object: views.object })
        .from(views)
        .where(which)
        .for('update');
      if (!before) throw isGone();
      await tx
        .update(views)
        .set({ ...made, storedBy: job.owner })
        .where(which);
      const room = { source: payload.source, kept: payload.view, tableSize };
      await scheduleDeletion(tx, [before.object, ...(await evictViews(tx, room))]);
      const limit = worker.config.LIMIT_USER_BYTES;
      await chargeUserStorage(tx, { user: job.owner, added: 0, limit });
    },
    stored: [made.object],
  };
};

export default view;

/** The stored view, and the size of its table in bytes. */
async function makeView(
  context: JobContext<'view'>,
): Promise<{ made: { object: string; size: number; rows: number }; tableSize: number }> {
  const { payload, job, worker, signal } = context;
  const { objects, config, database } = worker;
  const [source] = await database.db
    .select({ columns: artifacts.columns, size: artifacts.size })
    .from(artifacts)
    .where(eq(artifacts.object, payload.source));
  if (!source) throw isGone();
  return withScratch('parse', async scratch => {
    const input = join(scratch, 'table.parquet');
    const output = join(scratch, 'view.parquet');
    const keepFree = config.LIMIT_FREE_BYTES;
    const bytes = await objects.get(payload.source, { signal });
    await writeScratch(input, bytes, { signal, keepFree, size: source.size });
    context.progress(FETCHED);
    const { rows } = await runTableChild(
      {
        kind: 'view',
        scratch,
        input,
        output,
        columns: source.columns?.length ?? 0,
        sort: payload.sort,
        filter: payload.filter,
        groups: payload.groups,
      },
      {
        memory: config.LIMIT_PARSE_BYTES,
        seconds: config.LIMIT_PARSE_SECONDS,
        keepFree,
        onProgress: share => context.progress(FETCHED + share * (MADE - FETCHED)),
        signal,
      },
    ).catch((error: unknown) => {
      if (error instanceof TableError) throw refuse(error);
      throw error instanceof WindlassError && error.code === 'parse_failed'
        ? needsTooMuch(config.LIMIT_PARSE_BYTES)
        : error;
    });
    const { size: added } = await stat(output);
    const limit = config.LIMIT_USER_BYTES;
    await assertUserStorage(database.db, { user: job.owner, added, limit });
    const object = newObjectKey('views', payload.view);
    const size = await storeScratch(objects, object, { path: output, signal });
    return { made: { object, size, rows }, tableSize: source.size };
  });
}

const refuse = ({ message, hint }: TableError) =>
  new WindlassError('invalid_input', { detail: `${message}.`, hint });

const needsTooMuch = (memory: number) =>
  invalid(
    `this view needs more than ${memory} bytes of memory.`,
    'Sort or group by other columns, or let fewer rows pass a filter. LIMIT_PARSE_BYTES sets the limit.',
  );

function isGone(): WindlassError {
  return new WindlassError('conflict', {
    detail: 'the table was replaced or deleted meanwhile.',
    hint: 'Ask again.',
  });
}
