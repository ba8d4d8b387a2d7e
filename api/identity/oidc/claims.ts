import { forbidden } from '../../../shared/errors/errors.ts';

/** What an identity provider says of somebody: members of an ID token, of UserInfo, or of an access token. */
export type Claims = Readonly<Record<string, unknown>>;

/** OIDC_ADMINISTRATORS and OIDC_USERS: the claim, or one of its items, has this value. */
export interface ClaimRule {
  claim: string;
  value: string;
}

/** Parses `claim=value`. Neither a name nor a value of the setting is empty. */
export function parseClaimRule(setting: string): ClaimRule {
  const [claim = '', value = ''] = setting.split(/=(.*)/s);
  return { claim, value };
}

export function meetsRule(claims: Claims, { claim, value }: ClaimRule): boolean {
  const given = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  return Array.isArray(given) ? given.includes(value) : given === value;
}

/** Throws `forbidden` for somebody whom OIDC_USERS does not let in. Undefined: it lets everybody in. */
export function requireUser(claims: Claims, users: ClaimRule | undefined): void {
  if (!users || meetsRule(claims, users)) return;
  throw forbidden(
    'the identity provider knows you, but not as a user of this service.',
    'Ask an administrator of the identity provider. OIDC_USERS says what it must tell of users.',
  );
}
