import { z } from 'zod';
import { users } from '../../shared/database/schema.ts';
import { sendRecord } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { ACCOUNT_COLUMNS, type Account, accountTag, findAccount } from '../identity/account.ts';
import { addUser } from '../identity/add-user.ts';
import { changeUser } from '../identity/change-user.ts';
import { currentUser } from '../identity/current-user.ts';
import { removeOtherUser } from '../identity/remove-other-user.ts';
import { countSoleProjects } from '../identity/sole-projects.ts';
import { username } from '../identity/username.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';

const password = z
  .string()
  .min(8, 'must have at least 8 characters')
  .max(1_024)
  // All halves of characters have the same hash.
  .refine(text => !/\p{Cs}/u.test(text), 'must hold no half of a character');
const newUser = z
  .strictObject({ username, password, administrator: z.boolean().default(false) })
  .meta({ id: 'NewUser' });
const changes = z
  .strictObject({
    password: password.optional(),
    /** The password until now, for one's own; another's is reset without it. */
    current: z.string().max(1_024).optional(),
    administrator: z.boolean().optional(),
    disabled: z.boolean().optional(),
  })
  .refine(given => given.current === undefined || given.password !== undefined, {
    path: ['current'],
    message: 'belongs to a new password',
  })
  .meta({ id: 'UserChanges', dependentRequired: { current: ['password'] } });

const userRecord = z
  .object({
    username: z.string(),
    administrator: z.boolean(),
    disabled: z.boolean(),
    created: z.date(),
    storage: z
      .object({
        bytes: z.number().int().describe('All that counts for this user.'),
        limit: z.number().int().describe('LIMIT_USER_BYTES; 0: none.'),
      })
      .meta({ id: 'Storage' }),
  })
  .meta({ id: 'User' });
const userDetails = userRecord
  .extend({
    soleProjects: z
      .number()
      .int()
      .describe(
        'Projects that nobody else is in, and those that this user administers and others may only read: the removal of the user deletes the former, and leaves the latter to their readers.',
      ),
  })
  .meta({ id: 'UserDetails' });

const removal = z.strictObject({
  projectsTo: z
    .string()
    .optional()
    .describe(
      'Who becomes the administrator of the projects that `soleProjects` counts. Absent: those that nobody else is in are deleted, and the others are left to their readers.',
    ),
});

/** Users, for server administrators; `/users/-` is the user who asks. Users may change their own password. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const toUserRecord = ({ username, administrator, disabled, created, stored }: Account) => ({
    username,
    administrator,
    disabled,
    created,
    storage: { bytes: stored, limit: api.config.LIMIT_USER_BYTES },
  });

  resource(router, '/users', {
    get: operation({
      id: 'listUsers',
      topic: 'accounts',
      summary: 'List the users',
      query: pageQuery,
      for: 'administrators',
      answers: { 200: { means: 'A page of users.', json: pageOf('UserPage', userRecord) } },
      handle: async ({ res, query }) => {
        const rows = db.select(ACCOUNT_COLUMNS).from(users);
        res.json(
          await readPage(rows, query(), { by: users.username, key: 'username' }, toUserRecord),
        );
      },
    }),
    post: operation({
      id: 'addUser',
      topic: 'accounts',
      summary: 'Add a user',
      body: newUser,
      for: 'administrators',
      refusesTokens: true,
      answers: { 201: answerWithLocation('Added.', 'The user.', userRecord) },
      errors: ['forbidden', 'conflict'],
      handle: async ({ req, res, body }) => {
        const row = await addUser(api, { req, res }, body());
        res.status(201).location(`/api/users/${row.username}`).json(toUserRecord(row));
      },
    }),
  });

  resource(router, '/users/-', {
    get: operation({
      id: 'getCurrentUser',
      topic: 'accounts',
      summary: 'Who am I',
      details:
        '`administrator` is what these credentials may, which can be less than their user may.',
      headers: ['If-None-Match'],
      answers: {
        200: { means: 'The user of these credentials.', json: userRecord },
        304: 'Unchanged.',
      },
      handle: async ({ req, res }) => {
        const { username, administrator } = currentUser(res);
        const row = { ...(await findAccount(db, username)), administrator };
        const tag = accountTag(row, Number(administrator));
        sendRecord({ req, res }, { tag, record: () => toUserRecord(row) });
      },
    }),
  });

  resource(router, '/users/:username', {
    get: operation({
      id: 'getUser',
      topic: 'accounts',
      summary: 'Look at a user',
      headers: ['If-None-Match'],
      for: 'administrators',
      answers: { 200: { means: 'The user.', json: userDetails }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const row = await findAccount(db, pathParameter(req, 'username'));
        const soleProjects = await countSoleProjects(db, row.username);
        const record = () => ({ ...toUserRecord(row), soleProjects });
        sendRecord({ req, res }, { tag: accountTag(row, soleProjects), record });
      },
    }),
    put: operation({
      id: 'changeUser',
      topic: 'accounts',
      summary: "Change a user's password or rights, or disable the user",
      details:
        "Everyone may change their own password, with the one until now as `current`: logins by cookie end, API tokens live on. An administrator's reset of another's password and `disabled: true` end that user's logins, tokens, webhooks and remote sessions.",
      body: changes,
      headers: ['If-Match', 'If-None-Match'],
      refusesTokens: true,
      answers: { 200: { means: 'Changed.', json: userRecord } },
      errors: ['forbidden', 'not_found', 'conflict'],
      handle: async ({ req, res, body }) => {
        const given = body();
        const name = pathParameter(req, 'username');
        res.json(toUserRecord(await changeUser(api, { req, res, name }, given)));
      },
    }),
    delete: operation({
      id: 'removeUser',
      topic: 'accounts',
      summary:
        'Remove a user, with their logins, tokens and sessions, and the projects that nobody else is in',
      details:
        'Those are deleted with all that they hold, and those that the user administers and others may only read are left to their readers, unless `projectsTo` names who gets both. GET tells their number, `soleProjects`.',
      query: removal,
      headers: ['If-Match'],
      for: 'administrators',
      refusesTokens: true,
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res, query }) => {
        const { projectsTo: heir } = query();
        await removeOtherUser(api, { req, res, username: pathParameter(req, 'username'), heir });
        res.status(204).end();
      },
    }),
  });
});
