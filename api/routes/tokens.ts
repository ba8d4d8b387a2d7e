import { and, eq } from 'drizzle-orm';
import type { Request } from 'express';
import { z } from 'zod';
import { tokens, users } from '../../shared/database/schema.ts';
import { notFound } from '../../shared/errors/errors.ts';
import { isId } from '../../shared/ids.ts';
import { refuseIfMatchTag } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { zonedTime } from '../http/zoned-time.ts';
import { createToken, isUnexpired, type TokenRow } from '../identity/api-tokens.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockAdministrator } from '../identity/lock-user.ts';
import { revoke } from '../identity/revocations.ts';
import { operation, type TypedResponse } from '../openapi/operation.ts';

const scope = z.enum(['read', 'write']);
const newToken = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(100)
      .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must hold no control characters'),
    scope,
    expires: zonedTime
      .transform(text => new Date(text))
      .refine(time => time.getTime() > Date.now(), 'must be in the future')
      .optional(),
  })
  .meta({ id: 'NewToken' });
const madeToken = z.object({ id: z.string(), token: z.string() }).meta({ id: 'MadeToken' });
const tokenRecord = z
  .object({
    id: z.string(),
    name: z.string(),
    scope,
    created: z.date(),
    expires: z.date().nullable(),
    /** To the hour. */
    used: z.date().nullable(),
  })
  .meta({ id: 'Token' });

const toTokenRecord = ({
  id,
  name,
  scope,
  created,
  expires,
  used,
}: TokenRow): z.output<typeof tokenRecord> => ({ id, name, scope, created, expires, used });

/**
 * API tokens, for programs: one's own, and those of others for server administrators. A token is valid until it expires or
 * is deleted, or its user is disabled, removed or given another password by an administrator.
 */
export default routes('json-body', (router, api) => {
  const { db } = api.database;

  const page = {
    means: 'A page of tokens, without their texts.',
    json: pageOf('TokenPage', tokenRecord),
  };
  const list = async (
    res: TypedResponse<{ 200: typeof page }>,
    username: string,
    query: z.output<typeof pageQuery>,
  ) => {
    const where = and(eq(tokens.username, username), isUnexpired);
    const rows = db.select().from(tokens);
    const found = await readPage(rows, query, { by: tokens.id, key: 'id', where }, toTokenRecord);
    res.json(found);
  };
  const remove = async ({ req, res }: Exchange, username: string) => {
    const id = pathParameter(req, 'id');
    const theirs = and(eq(tokens.id, id), eq(tokens.username, username));
    const gone = isId(id)
      ? await db.transaction(async tx => {
          const me = currentUser(res);
          if (username !== me.username) await lockAdministrator(tx, me);
          const ended = await tx
            .delete(tokens)
            .where(and(theirs, isUnexpired))
            .returning({ id: tokens.id });
          if (ended.length > 0) refuseIfMatchTag(req);
          if (ended.length > 0) await auditOf({ req, res })(tx, 'token.delete', id);
          if (ended.length > 0) await revoke(tx, username);
          return ended;
        })
      : [];
    if (gone.length === 0)
      throw notFound('there is no such token.', 'GET on the path above it lists them.');
    api.revocations.forget();
    res.status(204).end();
  };
  const requireUser = async (req: Request): Promise<string> => {
    const username = pathParameter(req, 'username');
    const [user] = await db
      .select({ username: users.username })
      .from(users)
      .where(eq(users.username, username));
    if (user) return user.username;
    throw notFound(`there is no user ${username}.`, 'GET /api/users lists them.');
  };

  resource(router, '/users/-/tokens', {
    get: operation({
      id: 'listTokens',
      topic: 'accounts',
      summary: 'List your API tokens',
      query: pageQuery,
      answers: { 200: page },
      handle: ({ res, query }) => list(res, currentUser(res).username, query()),
    }),
    post: operation({
      id: 'createToken',
      topic: 'accounts',
      summary: 'Make an API token for a program',
      details:
        'A `read` token may only GET and HEAD, caches nothing and reaches no host. No token makes another.',
      body: newToken,
      refusesTokens: true,
      answers: {
        201: {
          means: 'Made. `token` is shown this once: `Authorization: Bearer`.',
          json: madeToken,
        },
      },
      errors: ['forbidden', 'conflict'],
      handle: async ({ req, res, body }) => {
        const user = currentUser(res);
        const given = body();
        api.credentialRates.countToken(user.username);
        const made = await createToken(db, user, given, auditOf({ req, res }));
        res.status(201).set('Cache-Control', 'no-store').json(made);
      },
    }),
  });

  resource(router, '/users/-/tokens/:id', {
    delete: operation({
      id: 'deleteToken',
      topic: 'accounts',
      summary: 'Delete an API token: it is refused at once',
      refusesTokens: true,
      headers: ['If-Match'],
      answers: { 204: 'Deleted.' },
      errors: ['not_found'],
      handle: ({ req, res }) => remove({ req, res }, currentUser(res).username),
    }),
  });

  resource(router, '/users/:username/tokens', {
    get: operation({
      id: 'listUserTokens',
      topic: 'accounts',
      summary: "List a user's API tokens",
      query: pageQuery,
      for: 'administrators',
      answers: { 200: page },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const asked = query();
        await list(res, await requireUser(req), asked);
      },
    }),
  });

  resource(router, '/users/:username/tokens/:id', {
    delete: operation({
      id: 'deleteUserToken',
      topic: 'accounts',
      summary: "Delete a user's API token: it is refused at once",
      for: 'administrators',
      refusesTokens: true,
      headers: ['If-Match'],
      answers: { 204: 'Deleted.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        await remove({ req, res }, await requireUser(req));
      },
    }),
  });
});
