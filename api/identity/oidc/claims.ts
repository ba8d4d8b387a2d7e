/** What an identity provider says of somebody: members of an ID token, of UserInfo, or of an access token. */
export type Claims = Readonly<Record<string, unknown>>;

/** OIDC_ADMINISTRATORS: the claim, or one of its items, has this value. */
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
