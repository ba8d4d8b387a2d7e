import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { Response } from 'express';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { conflict, notFound, WindlassError } from '../../shared/errors.ts';
import { publishCancelled } from '../../shared/jobs/cancel.ts';
import { hashPassword } from '../../shared/passwords.ts';
import { checkIfMatch, sendRecord, versionTag } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import {
  assertAdministrator,
  currentUser,
  refuseTokenCredentials,
  requireAdministrator,
} from '../identity/current-user.ts';
import { removeUser } from '../identity/remove-user.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';

const username = z
  .string()
  .regex(/^\w[\w.@-]{0,63}$/, 'must be 1 to 64 letters, digits, . _ @ -, and begin with no sign');
const password = z.string().min(8, 'must have at least 8 characters').max(1_024);
const newUser = z.strictObject({ username, password, administrator: z.boolean().default(false) });
const changes = z.strictObject({
  password: password.optional(),
  administrator: z.boolean().optional(),
});

type UserRow = typeof users.$inferSelect;
const userRecord = z.object({
  username: z.string(),
  administrator: z.boolean(),
  created: z.date(),
});
const view = ({ username, administrator, created }: UserRow): z.output<typeof userRecord> => ({
  username,
  administrator,
  created,
});

/** Users, for server administrators; `/users/-` is the user who asks. Users may change their own password. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const find = async (name: string): Promise<UserRow> => {
    const [row] = await db.select().from(users).where(eq(users.username, name));
    if (!row) throw unknownUser(name);
    return row;
  };

  resource(router, '/users', {
    get: operation({
      summary: 'List the users',
      query: pageQuery,
      for: 'administrators',
      answers: { 200: { means: 'A page of users.', json: pageOf(userRecord) } },
      handle: async ({ res, query }) => {
        requireAdministrator(res);
        const rows = db.select().from(users);
        res.json(await readPage(rows, query(), { by: users.username, key: 'username' }, view));
      },
    }),
    post: operation({
      summary: 'Add a user',
      body: newUser,
      for: 'administrators',
      answers: { 201: answerWithLocation('Added.', 'The user.', userRecord) },
      errors: ['forbidden', 'conflict'],
      handle: async ({ res, body }) => {
        requireAdministrator(res);
        refuseTokenCredentials(res);
        const { password, ...given } = body();
        const [row] = await db
          .insert(users)
          .values({ ...given, passwordHash: await hashPassword(password) })
          .onConflictDoNothing()
          .returning();
        if (!row)
          throw conflict(
            `there is a user ${given.username} already.`,
            'Choose another name, or change that user with PUT.',
          );
        res.status(201).location(`/api/users/${given.username}`).json(view(row));
      },
    }),
  });

  resource(router, '/users/-', {
    get: operation({
      summary: 'Who am I',
      headers: ['If-None-Match'],
      answers: {
        200: { means: 'The user of these credentials.', json: userRecord },
        304: 'Unchanged.',
      },
      handle: async ({ req, res }) => {
        const row = await find(currentUser(res).username);
        sendRecord(req, res, { tag: versionTag(row), record: () => view(row) });
      },
    }),
  });

  resource(router, '/users/:username', {
    get: operation({
      summary: 'Look at a user',
      headers: ['If-None-Match'],
      for: 'administrators',
      answers: { 200: { means: 'The user.', json: userRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        requireAdministrator(res);
        const row = await find(pathParameter(req, 'username'));
        sendRecord(req, res, { tag: versionTag(row), record: () => view(row) });
      },
    }),
    put: operation({
      summary: "Change a user's password or rights",
      details:
        'Everyone may change their own password. Logins by cookie end with any change, remembered passwords with the password; API tokens live on.',
      body: changes,
      headers: ['If-Match'],
      answers: { 200: { means: 'Changed.', json: userRecord } },
      errors: ['forbidden', 'not_found', 'conflict'],
      handle: async ({ req, res, body }) => {
        const name = pathParameter(req, 'username');
        const me = currentUser(res);
        const { password, administrator } = body();
        if (me.username !== name || administrator !== undefined) requireAdministrator(res);
        refuseTokenCredentials(res);
        if (me.username === name && administrator === false) throw notOnYourself('stop being one');
        const row = await find(name);
        checkIfMatch(req, versionTag(row));
        const passwordHash = password && (await hashPassword(password));
        const changed = await db.transaction(async tx => {
          if (administrator === false) await lockWithAdministrator(tx, res, name);
          const [written] = await tx
            .update(users)
            .set({
              version: sql`${users.version} + 1`,
              ...(passwordHash ? { passwordHash } : {}),
              ...(administrator === undefined ? {} : { administrator }),
            })
            .where(and(eq(users.username, name), eq(users.version, row.version)))
            .returning();
          if (written) return written;
          throw conflict(
            'somebody else changed this user at the same time.',
            'Get it again and repeat the change.',
          );
        });
        api.credentialCache.invalidate(name);
        res.json(view(changed));
      },
    }),
    delete: operation({
      summary: 'Remove a user, with their logins, tokens and sessions',
      headers: ['If-Match'],
      for: 'administrators',
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const me = requireAdministrator(res);
        const name = pathParameter(req, 'username');
        const gone = await db.transaction(async tx => {
          checkIfMatch(req, versionTag(await lockWithAdministrator(tx, res, name)));
          if (name === me.username) throw notOnYourself('delete yourself');
          return removeUser(tx, name);
        });
        api.credentialCache.invalidate(name);
        publishCancelled(api, gone.jobs);
        for (const sid of gone.sessions) api.notifications.publish('session', sid);
        res.status(204).end();
      },
    }),
  });
});

/**
 * Locks the rows of a user and of the administrator who asks, who must still be one: so an administrator is left even where two
 * remove each other concurrently. Sorted to avoid deadlocks. Throws `not_found`.
 */
async function lockWithAdministrator(tx: Tx, res: Response, name: string): Promise<UserRow> {
  const me = currentUser(res).username;
  const rows = await tx
    .select()
    .from(users)
    .where(inArray(users.username, [me, name]))
    .orderBy(asc(users.username))
    .for('update');
  const administrator = rows.find(row => row.username === me);
  if (!administrator) throw new WindlassError('unauthorized');
  assertAdministrator(administrator);
  const row = rows.find(({ username }) => username === name);
  if (!row) throw unknownUser(name);
  return row;
}

const unknownUser = (name: string) =>
  notFound(`there is no user ${name}.`, 'GET /api/users lists them.');

/** The administrator who asks always remains one. */
const notOnYourself = (what: string) =>
  conflict(`an administrator cannot ${what}.`, 'Have another administrator do it.');
