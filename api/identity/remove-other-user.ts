import { and, eq, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { UserRecord } from '../../shared/database/api-columns.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { jobs, users } from '../../shared/database/schema.ts';
import { cancelJobsOf, publishCancelled } from '../../shared/jobs/cancel.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { invalidInput } from '../http/validate.ts';
import { changedMeanwhile, checkUserVersion, notOnYourself } from './account.ts';
import { auditOf } from './audit.ts';
import { currentUser } from './current-user.ts';
import { disownEndedJobs, hasManyEndedJobs, nobodyAfter } from './disown-jobs.ts';
import { disownEndedUploads, hasManyEndedUploads } from './disown-uploads.ts';
import { endAccess, NOTHING_ENDED, publishEndedAccess } from './end-access.ts';
import { hasManyProjects, leaveSomeProjects } from './leave-projects.ts';
import { lockWithAdministrator } from './lock-user.ts';
import { removeUser } from './remove-user.ts';

interface Removal extends Exchange {
  username: string;
  /** Who gets the projects of countSoleProjects(). Undefined: see removeUser(). */
  heir: string | undefined;
  nobody: string;
}

/** Removes a user for an administrator, who cannot be that user. Throws `not_found`, `conflict` and `invalid_input`. */
export async function removeOtherUser(
  api: ApiContext,
  asked: Omit<Removal, 'nobody'>,
): Promise<void> {
  const { req, res, username, heir } = asked;
  const audit = auditOf({ req, res });
  const nobody = nobodyAfter(username);
  const disabled = await disownBeforehand(api, { ...asked, nobody });
  const gone = await api.database.db.transaction(async tx => {
    const row = await lockForRemoval(tx, asked);
    if (disabled === undefined) checkUserVersion(req, row);
    else if (row.version !== disabled) throw changedMeanwhile();
    await audit(tx, 'user.delete', username);
    return removeUser(tx, username, audit, { nobody, heir });
  });
  publishEndedAccess(api, gone);
}

/**
 * The removal locks projects and hosts of others, and may take 30 s. A user with many projects, jobs or uploads is
 * disabled first, and these change hands before it. Returns the version of the disabled user.
 */
async function disownBeforehand(api: ApiContext, removal: Removal): Promise<number | undefined> {
  const { req, res, username, nobody } = removal;
  const { db } = api.database;
  const hasMany =
    (await hasManyProjects(db, username)) ||
    (await hasManyEndedJobs(db, username)) ||
    (await hasManyEndedUploads(db, username));
  if (!hasMany) return undefined;
  const { version, ended } = await db.transaction(async tx => {
    const row = await lockForRemoval(tx, removal);
    checkUserVersion(req, row);
    if (row.disabled) return { version: row.version, ended: NOTHING_ENDED };
    const version = row.version + 1;
    await tx.update(users).set({ disabled: true, version }).where(eq(users.username, username));
    const audit = auditOf({ req, res });
    await audit(tx, 'user.disable', username);
    return { version, ended: await endAccess(tx, username, audit) };
  });
  publishEndedAccess(api, ended);
  await disownEndedJobs(db, { username, nobody }, version);
  await disownEndedUploads(db, { username, nobody }, version);
  // Last, because the empty ones are deleted: where this is cut off before, the user can be enabled again.
  while (await hasManyProjects(db, username)) await leaveSome(api, removal, version);
  return version;
}

/** Leaves some projects of the disabled user, in a transaction of their own. */
async function leaveSome(api: ApiContext, removal: Removal, version: number): Promise<void> {
  const { username, heir } = removal;
  const audit = auditOf(removal);
  const cancelled = await api.database.db.transaction(async tx => {
    const row = await lockForRemoval(tx, removal);
    if (row.version !== version) throw changedMeanwhile();
    const emptied = (await leaveSomeProjects(tx, { username, heir, audit })) ?? [];
    return cancelJobsOf(tx, sql`${jobs.project} = ${anyOf(emptied)}`);
  });
  publishCancelled(api, cancelled);
}

async function lockForRemoval(
  tx: Tx,
  { res, username, heir }: Pick<Removal, 'res' | 'username' | 'heir'>,
): Promise<UserRecord> {
  const row = await lockWithAdministrator(tx, res, username, heir);
  if (username === currentUser(res).username) throw notOnYourself('delete yourself');
  if (heir !== undefined) await requireHeir(tx, username, heir);
  return row;
}

/** The heir's row is locked, where there is one. */
async function requireHeir(tx: Tx, username: string, heir: string): Promise<void> {
  if (heir === username) throw noHeir('is the user who is removed');
  const canLogIn = and(eq(users.username, heir), eq(users.disabled, false));
  if (!(await rowExists(tx, users, canLogIn)))
    throw noHeir(`there is no user ${heir} who may log in`);
}

const noHeir = (problem: string) =>
  invalidInput(
    [{ field: 'projectsTo', problem }],
    'Name another user, or leave it out: then the projects that only this user is in are deleted.',
  );
