import { createHash } from 'node:crypto';
import { and, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { bookmarks } from '../../shared/database/schema.ts';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import { isId, newId } from '../../shared/ids.ts';
import { chargeStorage } from '../../shared/quotas/storage-limits.ts';
import { refuseIfMatchTag } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { refuseNonJson } from '../http/validate.ts';
import { currentUser } from '../identity/current-user.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { answerWithId, operation } from '../openapi/operation.ts';
import {
  findProject,
  lockProjectForShare,
  needRole,
  type RoleRequirement,
} from '../projects/access.ts';

const clientState = z
  .looseObject({})
  .meta({ id: 'BookmarkState', description: 'Any JSON object, kept byte for byte.' });

/** Postgres knows the length without reading the value. */
const contentBytes = sql<number>`octet_length(${bookmarks.content})`;
const ITEM = {
  id: bookmarks.bid,
  digest: bookmarks.hash,
  size: contentBytes,
  created: bookmarks.created,
};
const bookmarkItem = z
  .object({
    id: z.string(),
    digest: z.string().describe('SHA-256 of its bytes, in hexadecimal digits.'),
    size: z.number().int(),
    created: z.date(),
  })
  .meta({ id: 'BookmarkEntry' });

/** Bookmarks: saved states of a client. The same bytes in the same project are one bookmark. */
export default routes('raw-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/projects/:pid/bookmarks', {
    get: operation({
      id: 'listBookmarks',
      topic: 'projects',
      summary: 'List the bookmarks of a project',
      details: 'By their digests, in no order of time. `after` is a digest.',
      query: pageQuery,
      answers: {
        200: { means: 'A page of bookmarks.', json: pageOf('BookmarkPage', bookmarkItem) },
      },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const pid = pathParameter(req, 'pid');
        const { project } = await findProject(db, pid, needRole(res, 'reader'));
        const where = eq(bookmarks.project, project.pid);
        // The index of a project's bookmarks is by their hashes.
        const order = { by: bookmarks.hash, key: 'digest', where } as const;
        res.json(await readPage(db.select(ITEM).from(bookmarks), query(), order, row => row));
      },
    }),
    post: operation({
      id: 'storeBookmark',
      topic: 'projects',
      summary: 'Store a bookmark: any JSON object',
      details:
        'The same bytes in the same project give the same id. At most 16 MiB (LIMIT_VALUE_BYTES), nested at most 100 deep (LIMIT_JSON_DEPTH).',
      bodies: [{ type: 'application/json', means: "The client's state.", schema: clientState }],
      answers: { 201: answerWithId('Stored.', 'The bookmark.') },
      errors: [
        'invalid_input',
        'payload_too_large',
        'unsupported_media_type',
        'not_found',
        'forbidden',
        'insufficient_storage',
      ],
      handle: async ({ req, res }) => {
        const pid = pathParameter(req, 'pid');
        const need = needRole(res, 'writer');
        await findProject(db, pid, need);
        await api.freeSpace.assertFree();
        const { text: content } = await api.rawJson.read({ req, res }, 'object');
        await identifyLateSender(api, { req, res });
        const hash = createHash('sha256').update(content).digest('hex');
        const bid = await db
          .transaction(async tx => {
            await lockProjectForShare(tx, pid, need);
            const user = currentUser(res).username;
            const given = { project: pid, hash, content, storedBy: user };
            const { bid, added } = await insertBookmark(tx, given);
            await chargeStorage(tx, { project: pid, user, added, limits: api.config });
            return bid;
          })
          .catch(refuseNonJson('body'));
        res.status(201).location(`/api/bookmarks/${bid}`).json({ id: bid });
      },
    }),
  });

  resource(router, '/bookmarks/:bid', {
    get: operation({
      id: 'getBookmark',
      topic: 'projects',
      summary: 'Retrieve a bookmark',
      answers: {
        200: {
          means: "The client's state, as it was stored.",
          json: clientState,
          headers: { 'Cache-Control': 'Not to be kept.' },
        },
      },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const bid = pathParameter(req, 'bid');
        const { size } = await findBookmark(db, bid, needRole(res, 'reader'));
        res
          .type('application/json')
          .set('Cache-Control', 'no-cache, no-store, must-revalidate')
          .set('Pragma', 'no-cache')
          .set('Expires', '0')
          .set('Content-Length', String(size));
        if (req.method === 'HEAD') return void res.end();
        const check = () => findBookmark(db, bid, needRole(res, 'reader'));
        await api.requestMemory.reserveIfLarge(res, size, check);
        const [row] = await db
          .select({ content: bookmarks.content })
          .from(bookmarks)
          .where(eq(bookmarks.bid, bid));
        if (!row) throw unknownBookmark();
        res.end(row.content);
      },
    }),
    delete: operation({
      id: 'removeBookmark',
      topic: 'projects',
      summary: 'Remove a bookmark',
      headers: ['If-Match'],
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'forbidden'],
      handle: async ({ req, res }) => {
        await db.transaction(async tx => {
          const need = needRole(res, 'writer');
          const { bid, project } = await findBookmark(tx, pathParameter(req, 'bid'), need);
          await lockProjectForShare(tx, project, need);
          refuseIfMatchTag(req);
          await tx.delete(bookmarks).where(eq(bookmarks.bid, bid));
        });
        res.status(204).end();
      },
    }),
  });
});

/** Inserts the bookmark unless there is one with this content; returns its id, and the bytes that it adds to the project. */
async function insertBookmark(
  tx: Tx,
  given: { project: string; hash: string; content: string; storedBy: string },
): Promise<{ bid: string; added: number }> {
  const size = Buffer.byteLength(given.content);
  const same = and(eq(bookmarks.project, given.project), eq(bookmarks.hash, given.hash));
  for (;;) {
    const [before] = await tx.select({ bid: bookmarks.bid }).from(bookmarks).where(same);
    if (before) return { ...before, added: 0 };
    const [made] = await tx
      .insert(bookmarks)
      .values({ bid: newId(), size, ...given })
      .onConflictDoNothing({ target: [bookmarks.project, bookmarks.hash] })
      .returning({ bid: bookmarks.bid });
    if (made) return { ...made, added: size };
    // A concurrent request inserted it; it may have been deleted again.
  }
}

async function findBookmark(
  db: Tx,
  bid: string,
  need: RoleRequirement,
): Promise<{ bid: string; project: string; size: number }> {
  const [row] = isId(bid)
    ? await db
        .select({ bid: bookmarks.bid, project: bookmarks.project, size: contentBytes })
        .from(bookmarks)
        .where(eq(bookmarks.bid, bid))
    : [];
  if (!row) throw unknownBookmark();
  // The error names the bookmark, not its project.
  await findProject(db, row.project, need).catch((error: unknown) => {
    throw error instanceof WindlassError && error.code === 'not_found' ? unknownBookmark() : error;
  });
  return row;
}

const unknownBookmark = () =>
  notFound('there is no such bookmark.', 'POST /api/projects/(pid)/bookmarks makes one.');
