import { and, eq, sql } from 'drizzle-orm';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { UserRecord } from '../../shared/database/api-columns.ts';
import { users } from '../../shared/database/schema.ts';
import { conflict, forbidden } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { invalidInput } from '../http/validate.ts';
import {
  ACCOUNT_COLUMNS,
  type Account,
  changedMeanwhile,
  checkUserVersion,
  findAccount,
  notOnYourself,
  partyOf,
} from './account.ts';
import { auditOf } from './audit.ts';
import { clientAddress } from './client-address.ts';
import { currentUser, requireAdministrator } from './current-user.ts';
import { endAccess, NOTHING_ENDED, publishEndedAccess } from './end-access.ts';
import { forgetFailedLogins } from './failed-logins.ts';
import { lockWithAdministrator } from './lock-user.ts';
import type { PasswordVerifier } from './password-verifier.ts';
import { revoke } from './revocations.ts';
import { usedCredential } from './sent-credential.ts';

type Rights = Partial<Pick<UserRecord, 'administrator' | 'disabled'>>;

interface Change extends Exchange {
  name: string;
  password: string | undefined;
  /** The password until now, for one's own. */
  current: string | undefined;
  rights: Rights;
  isOwn: boolean;
  needsAdministrator: boolean;
}

/** Everyone may change their own password; all else needs an administrator, who always remains one. */
export async function changeUser(
  api: ApiContext,
  asked: Exchange & { name: string },
  { password, current, ...rights }: Rights & { password?: string; current?: string },
): Promise<Account> {
  const isOwn = currentUser(asked.res).username === asked.name;
  const needsAdministrator = !isOwn || Object.keys(rights).length > 0;
  if (needsAdministrator) requireAdministrator(asked.res);
  if (isOwn && rights.administrator === false)
    throw notOnYourself('end your own rights as an administrator');
  if (isOwn && rights.disabled) throw notOnYourself('disable yourself');
  const change = { ...asked, password, current, rights, isOwn, needsAdministrator };
  if (!isOwn || password === undefined) return make(api, change);
  return api.passwordChanges.run(credentialOf(change), () => make(api, change));
}

/** Only a link has none, and changes nothing. */
const credentialOf = ({ req, res, name }: Change) => usedCredential({ req, res }) ?? name;

async function make(api: ApiContext, change: Change): Promise<Account> {
  const { req, res, name, password, rights, isOwn } = change;
  const row = await findAccount(api.database.db, name);
  checkUserVersion(req, row);
  if (password === undefined && Object.keys(rights).length === 0) return row;
  if (password !== undefined && row.issuer !== null) throw hasNoPassword(name);
  if (
    row.issuer !== null &&
    api.config.OIDC_ADMINISTRATORS &&
    changesOf(rights, row).administrator !== undefined
  )
    throw providerDecides(name);
  if (password !== undefined && isOwn) {
    await checkCurrent(api.passwords, change);
    api.credentialRates.countPassword(name);
  }
  const passwordHash = password && (await api.passwords.hash(password, partyOf({ req, res })));
  return write(api, change, { row, passwordHash });
}

async function write(
  api: ApiContext,
  { req, res, name, rights, isOwn, needsAdministrator }: Change,
  { row, passwordHash }: { row: Account; passwordHash: string | undefined },
): Promise<Account> {
  const audit = auditOf({ req, res });
  const { written, ended } = await api.database.db.transaction(async tx => {
    const locked = needsAdministrator ? await lockWithAdministrator(tx, res, name) : row;
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
      .returning(ACCOUNT_COLUMNS);
    if (!written) throw changedMeanwhile();
    if (passwordHash) await audit(tx, 'password', name);
    for (const action of actionsOf(changed)) await audit(tx, action, name);
    const isReset = passwordHash && !isOwn;
    if (isReset) await forgetFailedLogins(tx, name);
    if (changed.disabled || isReset) return { written, ended: await endAccess(tx, name, audit) };
    await revoke(tx, name);
    return { written, ended: NOTHING_ENDED };
  });
  if (ended) publishEndedAccess(api, ended);
  return written;
}

/** The rights that the user does not have already. */
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

/**
 * A user who changes the own password gives the present one, so that a page left open does not cost the account. A
 * wrong one counts as a failed login. Throws `invalid_input` and `forbidden`.
 */
async function checkCurrent(
  passwords: PasswordVerifier,
  { req, res, name, current }: Change,
): Promise<void> {
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

const hasNoPassword = (name: string) =>
  conflict(
    `the user ${name} logs in at the identity provider, and has no password here.`,
    'Change it there, or disable the user here.',
  );

/** At each login: until the next one, tokens would have another right. */
const providerDecides = (name: string) =>
  conflict(
    `the user ${name} logs in at the identity provider, which alone decides who is an administrator.`,
    'Change it there, in the claim that OIDC_ADMINISTRATORS names, or disable the user here.',
  );
