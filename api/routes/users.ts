import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { USER_COLUMNS, type UserRecord } from '../../shared/database/api-columns.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { conflict, forbidden, notFound } from '../../shared/errors/errors.ts';
import { storedBytes } from '../../shared/quotas/user-storage.ts';
import { checkIfMatch, sendRecord, versionTag } from '../http/conditional-requests.ts';
import { pageOf, pageQuery, readPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { invalidInput } from '../http/validate.ts';
import { auditOf } from '../identity/audit.ts';
import { clientAddress } from '../identity/client-address.ts';
import { currentUser, requireAdministrator } from '../identity/current-user.ts';
import { disownEndedJobs, hasManyEndedJobs, nobodyAfter } from '../identity/disown-jobs.ts';
import { endAccess, publishEndedAccess } from '../identity/end-access.ts';
import { assertStillAdministrator, lockAdministrator } from '../identity/lock-user.ts';
import type { PasswordVerifier } from '../identity/password-verifier.ts';
import { removeUser } from '../identity/remove-user.ts';
import { sentCredential } from '../identity/sent-credential.ts';
import { username } from '../identity/username.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';

const password = z.string().min(8, 'must have at least 8 characters').max(1_024);
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

const COLUMNS = { ...USER_COLUMNS, stored: storedBytes(users.username) };
type Found = UserRecord & { stored: number };

/** Users, for server administrators; `/users/-` is the user who asks. Users may change their own password. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const view = ({ username, administrator, disabled, created, stored }: Found) => ({
    ...{ username, administrator, disabled, created },
    storage: { bytes: stored, limit: api.config.LIMIT_USER_BYTES },
  });
  const find = async (name: string): Promise<Found> => {
    const [row] = await db.select(COLUMNS).from(users).where(eq(users.username, name));
    if (!row) throw unknownUser(name);
    return row;
  };

  resource(router, '/users', {
    get: operation({
      id: 'listUsers',
      topic: 'accounts',
      summary: 'List the users',
      query: pageQuery,
      for: 'administrators',
      answers: { 200: { means: 'A page of users.', json: pageOf('UserPage', userRecord) } },
      handle: async ({ res, query }) => {
        const rows = db.select(COLUMNS).from(users);
        res.json(await readPage(rows, query(), { by: users.username, key: 'username' }, view));
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
        const { password, ...given } = body();
        const passwordHash = await api.passwords.hash(password, partyOf(req, res));
        const row = await db.transaction(async tx => {
          await lockAdministrator(tx, currentUser(res));
          const [added] = await tx
            .insert(users)
            .values({ ...given, passwordHash })
            .onConflictDoNothing()
            .returning(COLUMNS);
          if (!added) return undefined;
          const audit = auditOf(req, res);
          await audit(tx, 'user.create', added.username);
          if (added.administrator) await audit(tx, 'user.promote', added.username);
          return added;
        });
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
      id: 'getCurrentUser',
      topic: 'accounts',
      summary: 'Who am I',
      headers: ['If-None-Match'],
      answers: {
        200: { means: 'The user of these credentials.', json: userRecord },
        304: 'Unchanged.',
      },
      handle: async ({ req, res }) => {
        const row = await find(currentUser(res).username);
        sendRecord(req, res, { tag: tagOf(row), record: () => view(row) });
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
      answers: { 200: { means: 'The user.', json: userRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const row = await find(pathParameter(req, 'username'));
        sendRecord(req, res, { tag: tagOf(row), record: () => view(row) });
      },
    }),
    put: operation({
      id: 'changeUser',
      topic: 'accounts',
      summary: "Change a user's password or rights, or disable the user",
      details:
        "Everyone may change their own password, with the one until now as `current`: logins by cookie end, API tokens live on. An administrator's reset of another's password and `disabled: true` end that user's logins, tokens and remote sessions.",
      body: changes,
      headers: ['If-Match'],
      refusesTokens: true,
      answers: { 200: { means: 'Changed.', json: userRecord } },
      errors: ['forbidden', 'not_found', 'conflict'],
      handle: async ({ req, res, body }) => {
        const given = body();
        const name = pathParameter(req, 'username');
        const isOwn = currentUser(res).username === name;
        const { password, current, ...rights } = given;
        if (!isOwn || Object.keys(rights).length > 0) requireAdministrator(res);
        if (isOwn && rights.administrator === false) throw notOnYourself('stop being one');
        if (isOwn && rights.disabled) throw notOnYourself('disable yourself');
        const change = () => changeUser({ req, res, name, given });
        if (isOwn && password !== undefined)
          await api.passwordChanges.run(sentCredential(req), change);
        else await change();
      },
    }),
    delete: operation({
      id: 'removeUser',
      topic: 'accounts',
      summary: 'Remove a user, with their logins, tokens and sessions',
      headers: ['If-Match'],
      for: 'administrators',
      refusesTokens: true,
      answers: { 204: 'Removed.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const name = pathParameter(req, 'username');
        const nobody = nobodyAfter(name);
        const disabled = await disownBeforehand(req, res, { username: name, nobody });
        const gone = await db.transaction(async tx => {
          const row = await lockForRemoval(tx, res, name);
          if (disabled === undefined) checkVersion(req, row);
          else if (row.version !== disabled) throw changedMeanwhile();
          await auditOf(req, res)(tx, 'user.delete', name);
          return removeUser(tx, name, auditOf(req, res), nobody);
        });
        publishEndedAccess(api, name, gone);
        res.status(204).end();
      },
    }),
  });

  /**
   * The removal locks projects and hosts of others. A user with many jobs is disabled first, and the jobs change hands
   * before it. Returns the version of the disabled user.
   */
  async function disownBeforehand(
    req: Request,
    res: Response,
    hands: { username: string; nobody: string },
  ): Promise<number | undefined> {
    const { username: name } = hands;
    if (!(await hasManyEndedJobs(db, name))) return undefined;
    const { version, ended } = await db.transaction(async tx => {
      const row = await lockForRemoval(tx, res, name);
      checkVersion(req, row);
      if (row.disabled) return { version: row.version, ended: NOTHING_ENDED };
      const version = row.version + 1;
      await tx.update(users).set({ disabled: true, version }).where(eq(users.username, name));
      const audit = auditOf(req, res);
      await audit(tx, 'user.disable', name);
      return { version, ended: await endAccess(tx, name, audit) };
    });
    publishEndedAccess(api, name, ended);
    await disownEndedJobs(db, hands, version);
    return version;
  }

  async function changeUser(asked: {
    req: Request;
    res: Response;
    name: string;
    given: z.output<typeof changes>;
  }): Promise<void> {
    const { req, res, name } = asked;
    const { password, current, ...rights } = asked.given;
    const isOwn = currentUser(res).username === name;
    const row = await find(name);
    checkVersion(req, row);
    if (password === undefined && Object.keys(rights).length === 0) return void res.json(view(row));
    if (password !== undefined && row.issuer !== null) throw hasNoPassword(name);
    if (password !== undefined && isOwn) {
      await checkCurrent(api.passwords, { req, res, name, current });
      api.passwordChanges.count(name, sentCredential(req));
    }
    const passwordHash = password && (await api.passwords.hash(password, partyOf(req, res)));
    const { written, ended } = await db.transaction(async tx => {
      const locked =
        !isOwn || Object.keys(rights).length > 0 ? await lockWithAdministrator(tx, res, name) : row;
      if (locked.version !== row.version) throw changedMeanwhile();
      const changed = changesOf(rights, row);
      // Logins and links end with the version that they are bound to.
      if (!passwordHash && Object.keys(changed).length === 0) return { written: row };
      const [written] = await tx
        .update(users)
        .set({
          version: sql`${users.version} + 1`,
          ...(passwordHash ? { passwordHash } : {}),
          ...changed,
        })
        .where(and(eq(users.username, name), eq(users.version, row.version)))
        .returning(COLUMNS);
      if (!written) throw changedMeanwhile();
      const audit = auditOf(req, res);
      if (passwordHash) await audit(tx, 'password', name);
      for (const action of actionsOf(changed)) await audit(tx, action, name);
      const ends = changed.disabled || (passwordHash && !isOwn);
      return { written, ended: ends ? await endAccess(tx, name, audit) : NOTHING_ENDED };
    });
    if (ended) publishEndedAccess(api, name, ended);
    res.json(view(written));
  }
});

/** What is stored is seen in a record, and is nothing that a write of the record could undo. */
const tagOf = (row: Found) => versionTag(row, `.${row.stored}`);
const checkVersion = (req: Request, row: UserRecord) =>
  checkIfMatch(req, versionTag(row), tags => tags.replace(/\.\d+"/g, '"'));

/**
 * Locks the rows of a user and of the administrator who asks, who must still be one: so one is left even where two
 * remove each other at once. Sorted against deadlocks. Throws `not_found`.
 */
async function lockWithAdministrator(tx: Tx, res: Response, name: string): Promise<UserRecord> {
  const me = currentUser(res);
  const rows = await tx
    .select(USER_COLUMNS)
    .from(users)
    .where(inArray(users.username, [me.username, name]))
    .orderBy(asc(users.username))
    .for('update');
  assertStillAdministrator(
    rows.find(({ username }) => username === me.username),
    me,
  );
  const row = rows.find(({ username }) => username === name);
  if (!row) throw unknownUser(name);
  return row;
}

/** The same for a removal, which nobody does to themselves. */
async function lockForRemoval(tx: Tx, res: Response, name: string): Promise<UserRecord> {
  const row = await lockWithAdministrator(tx, res, name);
  if (name === currentUser(res).username) throw notOnYourself('delete yourself');
  return row;
}

type Rights = Partial<Pick<UserRecord, 'administrator' | 'disabled'>>;

/** Of these rights those that the user does not have already. */
const changesOf = ({ administrator, disabled }: Rights, row: UserRecord): Rights => ({
  ...(administrator === !row.administrator && { administrator }),
  ...(disabled === !row.disabled && { disabled }),
});

/** What the audit tells of these changes. */
function actionsOf({ administrator, disabled }: Rights): AuditAction[] {
  const actions: AuditAction[] = [];
  if (administrator !== undefined) actions.push(administrator ? 'user.promote' : 'user.demote');
  if (disabled !== undefined) actions.push(disabled ? 'user.disable' : 'user.enable');
  return actions;
}

const changedMeanwhile = () =>
  conflict(
    'somebody else changed this user at the same time.',
    'Get it again and repeat the change.',
  );

const NOTHING_ENDED = { jobs: [], sessions: [] };

/**
 * A user who changes the own password gives the present one, so that a page left open does not cost the account. A
 * wrong one counts as a failed login. Throws `invalid_input` and `forbidden`.
 */
async function checkCurrent(
  passwords: PasswordVerifier,
  given: { req: Request; res: Response; name: string; current: string | undefined },
): Promise<void> {
  const { req, res, name, current } = given;
  if (current === undefined)
    throw invalidInput(
      [{ field: 'current', problem: 'is missing: your password until now' }],
      'Send `current` with your own password.',
    );
  const attempt = { username: name, password: current, address: clientAddress(req) };
  const { requestId } = res.locals;
  if (await passwords.check({ ...attempt, action: 'password', requestId })) return;
  throw forbidden('`current` is not your password.', 'Send the password until now as `current`.');
}

/** Who pays for the hash of a password. */
const partyOf = (req: Request, res: Response) => ({
  account: currentUser(res).username,
  address: clientAddress(req),
});

const unknownUser = (name: string) =>
  notFound(`there is no user ${name}.`, 'GET /api/users lists them.');

const hasNoPassword = (name: string) =>
  conflict(
    `the user ${name} logs in at the identity provider, and has no password here.`,
    'Change it there, or disable the user here.',
  );

/** The administrator who asks always remains one. */
const notOnYourself = (what: string) =>
  conflict(`an administrator cannot ${what}.`, 'Have another administrator do it.');
