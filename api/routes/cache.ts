import { and, eq } from 'drizzle-orm';
import type { Request } from 'express';
import { z } from 'zod';
import { cacheEntries } from '../../shared/database/schema.ts';
import { writeOrLog } from '../../shared/database/write-or-log.ts';
import { notFound } from '../../shared/errors/errors.ts';
import { framesOfEntry, isCacheUseDue, recordCacheUse } from '../../shared/projects/cache-entry.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import { downloadQuery } from '../http/attachment.ts';
import { pageOf, pageQueryBy, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { checkObject, sendVideo } from '../http/send-object.ts';
import { operation, videoAnswers } from '../openapi/operation.ts';
import { findProject, lockProjectForShare, needRole } from '../projects/access.ts';
import { readCacheKey } from '../projects/cache-key.ts';

const cacheItem = z
  .object({
    key: z.string(),
    type: z.string(),
    size: z.number().int(),
    frames: z.number().int().nullable().describe('Of the video; null where it is not known.'),
    created: z.date(),
    used: z.date().describe('When it was last read, to the minute.'),
  })
  .meta({ id: 'CacheEntry' });

const { key, type, size, created, used } = cacheEntries;
const ITEM = { key, type, size, frames: framesOfEntry, created, used };

/** A project's cache: named references to videos, which are kept as long as they are referred to. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/projects/:pid/cache', {
    get: operation({
      id: 'listCache',
      topic: 'projects',
      summary: 'List what is in the cache of a project',
      query: pageQueryBy(900),
      answers: {
        200: { means: 'A page of entries, by key.', json: pageOf('CachePage', cacheItem) },
      },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const pid = pathParameter(req, 'pid');
        const { project } = await findProject(db, pid, needRole(res, 'reader'));
        const where = eq(cacheEntries.project, project.pid);
        const order = { by: cacheEntries.key, key: 'key', where } as const;
        res.json(await readPage(db.select(ITEM).from(cacheEntries), query(), order, row => row));
      },
    }),
  });

  resource(router, '/projects/:pid/cache/*key', {
    get: operation({
      id: 'fetchCacheEntry',
      topic: 'projects',
      summary: 'Retrieve a cached object',
      query: z.object(downloadQuery),
      headers: ['Range', 'If-Range', 'If-None-Match', 'If-Match'],
      answers: videoAnswers('The whole.'),
      errors: ['not_found', 'range_not_satisfiable'],
      handle: async ({ req, res, query }) => {
        const pid = pathParameter(req, 'pid');
        const { project } = await findProject(db, pid, needRole(res, 'reader'));
        const { download } = query();
        const key = keyOf(req);
        const [entry] = await db
          .select({ object: cacheEntries.object, type, isUseDue: isCacheUseDue })
          .from(cacheEntries)
          .where(and(eq(cacheEntries.project, project.pid), eq(cacheEntries.key, key)));
        if (!entry) throw unknownEntry();
        // The request succeeds without it.
        if (entry.isUseDue) {
          const use = recordCacheUse(db, { project: project.pid, key });
          await writeOrLog(api.log, 'recording the use of a cached object', use);
        }
        await sendVideo(api, { req, res }, { key: entry.object, type: entry.type, download });
      },
    }),
    delete: operation({
      id: 'removeCacheEntry',
      topic: 'projects',
      summary: 'Remove an object from the cache of a project',
      headers: ['If-Match'],
      answers: { 204: 'Cache object deleted.' },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res }) => {
        await db.transaction(async tx => {
          const pid = pathParameter(req, 'pid');
          const { project } = await lockProjectForShare(tx, pid, needRole(res, 'writer'));
          const [gone] = await tx
            .delete(cacheEntries)
            .where(and(eq(cacheEntries.project, project.pid), eq(cacheEntries.key, keyOf(req))))
            .returning({ object: cacheEntries.object });
          if (!gone) throw unknownEntry();
          // Where this throws, the transaction and so the deletion is rolled back.
          await checkObject(api, req, gone.object);
          await scheduleDeletion(tx, [gone.object]);
        });
        res.statusMessage = 'Cache object deleted.';
        res.status(204).end();
      },
    }),
  });
});

/** The key is the rest of the path, with slashes escaped or not. Express splits it into decoded segments. */
function keyOf(req: Request): string {
  const segments: unknown = req.params.key;
  return readCacheKey(Array.isArray(segments) ? segments.join('/') : '');
}

const unknownEntry = () =>
  notFound(
    'the cache of this project has no such key.',
    'GET /api/projects/(pid)/cache lists its keys.',
  );
