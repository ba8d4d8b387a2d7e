import { and, eq } from 'drizzle-orm';
import { USER_COLUMNS, type UserRecord } from '../../../shared/database/api-columns.ts';
import type { Db, Tx } from '../../../shared/database/connect.ts';
import { users } from '../../../shared/database/schema.ts';
import { forbidden } from '../../../shared/errors/errors.ts';
import type { WriteAudit } from '../audit.ts';
import { revoke } from '../revocations.ts';
import type { User } from '../user.ts';
import { username } from '../username.ts';
import { type ClaimRule, meetsRule, requireUser } from './claims.ts';
import type { Subject } from './identity-provider.ts';

export interface SignInOptions {
  /** OIDC_USERNAME_CLAIM */
  usernameClaim: string;
  /** OIDC_USERS; undefined: everybody is one. */
  users: ClaimRule | undefined;
  /** OIDC_ADMINISTRATORS; undefined: administrators of this service decide. */
  administrators: ClaimRule | undefined;
  /** Writes entries of the audit as this user. */
  auditAs(username: string): WriteAudit;
}

/**
 * The user of a subject of the identity provider, made at the first login. A name that another user has is refused,
 * never joined: whoever can choose their name there would get that user's account. Throws `forbidden`.
 */
export async function signIn(
  db: Db,
  subject: Subject,
  options: SignInOptions,
): Promise<{ user: User; isChanged: boolean }> {
  requireUser(subject.claims, options.users);
  return db.transaction(async tx => {
    const found = (await findUser(tx, subject)) ?? (await addUser(tx, subject, options));
    if (found.disabled)
      throw forbidden('this user is disabled here.', 'Ask an administrator of this service.');
    return updateRights(tx, found, { subject, ...options });
  });
}

async function findUser(tx: Tx, { issuer, subject }: Subject): Promise<UserRecord | undefined> {
  const [row] = await tx
    .select(USER_COLUMNS)
    .from(users)
    .where(and(eq(users.issuer, issuer), eq(users.subject, subject)))
    .for('no key update');
  return row;
}

async function addUser(
  tx: Tx,
  identity: Subject,
  { usernameClaim, auditAs }: SignInOptions,
): Promise<UserRecord> {
  const name = username.safeParse(identity.claims[usernameClaim]).data;
  if (name === undefined)
    throw forbidden(
      `the claim ${usernameClaim} of the identity provider is no name of a user.`,
      'An administrator: OIDC_USERNAME_CLAIM must name a claim of 1 to 64 letters, digits, . _ @ -, and OIDC_SCOPES ask for it.',
    );
  const { issuer, subject } = identity;
  const [added] = await tx
    .insert(users)
    .values({ username: name, issuer, subject })
    .onConflictDoNothing()
    .returning(USER_COLUMNS);
  if (added) {
    await auditAs(name)(tx, 'user.create', name);
    return added;
  }
  // Another login of the same subject may have committed meanwhile.
  const other = await findUser(tx, identity);
  if (other) return other;
  throw forbidden(
    `there is another user ${name} here.`,
    'Ask an administrator: one of the two must get another name.',
  );
}

/** OIDC_ADMINISTRATORS decides at each login. A change ends other logins, as every change of a user does. */
async function updateRights(
  tx: Tx,
  row: UserRecord,
  { subject, administrators, auditAs }: SignInOptions & { subject: Subject },
): Promise<{ user: User; isChanged: boolean }> {
  const administrator = administrators
    ? meetsRule(subject.claims, administrators)
    : row.administrator;
  const { username } = row;
  const user = { username, administrator, version: row.version };
  if (administrator === row.administrator) return { user, isChanged: false };
  user.version += 1;
  await tx
    .update(users)
    .set({ administrator, version: user.version })
    .where(eq(users.username, username));
  await auditAs(username)(tx, administrator ? 'user.promote' : 'user.demote', username);
  await revoke(tx, username);
  return { user, isChanged: true };
}
