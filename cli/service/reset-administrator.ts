import { randomBytes } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { endAccess } from '../../api/identity/end-access.ts';
import { forgetFailedLogins } from '../../api/identity/failed-logins.ts';
import { username } from '../../api/identity/username.ts';
import { type AuditTarget, recordAudit } from '../../shared/audit/audit.ts';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { type Database, openDatabase, type Tx } from '../../shared/database/connect.ts';
import { notifyWith } from '../../shared/database/notifications.ts';
import { users } from '../../shared/database/schema.ts';
import { hashPassword } from '../../shared/secrets/passwords.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { CommandError } from '../command-error.ts';
import { withDatabase } from '../find-database.ts';
import { printRecord } from '../output/print-records.ts';
import { readNewPassword } from '../secret-input.ts';
import type { CommandContext } from './command-context.ts';

/** As for the users of the API. */
const LENGTH = { least: 8, most: 1_024 };

/**
 * `windlass admin reset`: lets whoever owns the service in, as an administrator with a new password. Everything that let
 * the user in before ends, as by a reset over the API.
 */
export async function resetAdministrator(
  { environment, life }: CommandContext,
  given: string | undefined,
  { passwordStdin, json }: { passwordStdin?: boolean; json?: boolean },
): Promise<void> {
  const config = readConfig(environment);
  const name = checkName(given ?? config.ADMIN_USERNAME);
  const isMadeUp = !passwordStdin && !process.stdin.isTTY;
  const password = isMadeUp
    ? randomBytes(12).toString('base64url')
    : checkPassword(await readNewPassword(name, passwordStdin));
  const passwordHash = await hashPassword(password);
  const isNew = await withDatabase(config, life.stopping, async url => {
    const database = openDatabase(url, { max: 1 });
    try {
      return await reset(database, name, passwordHash);
    } finally {
      await database.close();
    }
  });
  const done = isNew
    ? `${name} is a new administrator`
    : `${name} is an administrator with a new password; the logins, tokens, webhooks and sessions before have ended`;
  const sentence = isMadeUp ? `${done}.\nPassword: ${password} (shown only now)` : `${done}.`;
  const record = { username: name, created: isNew, ...(isMadeUp && { password }) };
  await printRecord(record, { sentence, json });
}

/** Returns whether the user is new. */
function reset({ db }: Database, name: string, passwordHash: string): Promise<boolean> {
  return db.transaction(async tx => {
    const [added] = await tx
      .insert(users)
      .values({ username: name, passwordHash, administrator: true })
      .onConflictDoNothing()
      .returning({ username: users.username });
    if (added) await audit(tx, 'user.create', name);
    if (added) await audit(tx, 'user.promote', name);
    else await resetUser(tx, name, passwordHash);
    // Last, as over the API: the user's row is locked first.
    await forgetFailedLogins(tx, name);
    return added !== undefined;
  });
}

async function resetUser(tx: Tx, name: string, passwordHash: string): Promise<void> {
  const [row] = await tx.select().from(users).where(eq(users.username, name)).for('update');
  if (!row) throw new CommandError(`${name} was removed meanwhile.`, { hint: 'Run it again.' });
  if (row.issuer !== null)
    throw new CommandError(`${name} logs in at the identity provider, and has no password here.`, {
      hint: 'Name another user: windlass admin reset NAME. One who is not there is added.',
    });
  const version = sql`${users.version} + 1`;
  await tx
    .update(users)
    .set({ passwordHash, administrator: true, disabled: false, version })
    .where(eq(users.username, name));
  await audit(tx, 'password', name);
  if (!row.administrator) await audit(tx, 'user.promote', name);
  if (row.disabled) await audit(tx, 'user.enable', name);
  const ended = await endAccess(tx, name, audit);
  // No process follows that would publish it.
  await notifyWith(tx, 'cancel', ended.jobs);
  await notifyWith(tx, 'session', ended.sessions);
}

/** No user of the service does it: the owner of its database does. */
const audit = (tx: Tx, action: AuditAction, target: AuditTarget = null) =>
  recordAudit(tx, { user: null, address: null, requestId: null, action, target });

function checkName(name: string): string {
  const problem = username.safeParse(name).error?.issues[0]?.message;
  if (problem === undefined) return name;
  throw new CommandError(`No user can be called ${name}: a name ${problem}.`, {
    hint: 'Give another one: windlass admin reset NAME.',
  });
}

function checkPassword(password: string): string {
  if (password.length >= LENGTH.least && password.length <= LENGTH.most) return password;
  throw new CommandError(
    `The password must have ${LENGTH.least} to ${LENGTH.most} characters; nothing was changed.`,
  );
}
