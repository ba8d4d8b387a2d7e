import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { tokens } from '../../shared/database/schema.ts';
import { notFound } from '../../shared/errors.ts';
import { isId } from '../../shared/ids.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { createToken, isUnexpired, type TokenRow } from '../identity/api-tokens.ts';
import { currentUser, refuseTokenCredentials } from '../identity/current-user.ts';
import { operation } from '../openapi/operation.ts';

const scope = z.enum(['read', 'write']);
const newToken = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must hold no control characters'),
  scope,
  expires: z.iso
    .datetime({
      offset: true,
      error: 'must be a time in ISO 8601 with its zone, such as 2030-01-01T00:00:00Z',
    })
    .transform(text => new Date(text))
    .refine(time => time.getTime() > Date.now(), 'must be in the future')
    .optional(),
});
const madeToken = z.object({ id: z.string(), token: z.string() });
const tokenRecord = z.object({
  id: z.string(),
  name: z.string(),
  scope,
  created: z.date(),
  expires: z.date().nullable(),
});

const view = ({ id, name, scope, created, expires }: TokenRow): z.output<typeof tokenRecord> => ({
  id,
  name,
  scope,
  created,
  expires,
});

/**
 * The user's API tokens, for programs. A token is valid until it expires, is deleted or its user is removed; a new password
 * does not end it.
 */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  resource(router, '/users/-/tokens', {
    get: operation({
      summary: 'List your API tokens',
      query: pageQuery,
      answers: {
        200: { means: 'A page of tokens, without their texts.', json: pageOf(tokenRecord) },
      },
      handle: async ({ res, query }) => {
        const where = and(eq(tokens.username, currentUser(res).username), isUnexpired);
        const rows = db.select().from(tokens);
        const page = await readPage(rows, query(), { by: tokens.id, key: 'id', where }, view);
        res.set('Cache-Control', 'private, no-cache').json(page);
      },
    }),
    post: operation({
      summary: 'Make an API token for a program',
      details:
        'A `read` token may only GET and HEAD, and cache nothing. A token lives on when the password changes; no token makes another.',
      body: newToken,
      answers: {
        201: {
          means: 'Made. `token` is shown this once: `Authorization: Bearer`.',
          json: madeToken,
        },
      },
      errors: ['forbidden', 'conflict'],
      handle: async ({ res, body }) => {
        refuseTokenCredentials(res);
        const made = await createToken(db, currentUser(res), body());
        res.status(201).set('Cache-Control', 'no-store').json(made);
      },
    }),
  });

  resource(router, '/users/-/tokens/:id', {
    delete: operation({
      summary: 'Delete an API token: it is refused at once',
      answers: { 204: 'Deleted.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const id = pathParameter(req, 'id');
        const mine = and(eq(tokens.id, id), eq(tokens.username, currentUser(res).username));
        const gone = isId(id)
          ? await db.delete(tokens).where(and(mine, isUnexpired)).returning({ id: tokens.id })
          : [];
        if (gone.length === 0)
          throw notFound('you have no such token.', 'GET /api/users/-/tokens lists them.');
        api.credentialCache.invalidate(currentUser(res).username);
        res.status(204).end();
      },
    }),
  });
});
