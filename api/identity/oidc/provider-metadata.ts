import { isSecureUrl } from '../../../shared/settings/values.ts';

/** Where secrets go, and what is believed comes from. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'];
const OPTIONAL = 'userinfo_endpoint';

/**
 * Throws unless the document is of this issuer and its addresses are https, or on this machine where the issuer is.
 * Other origins are allowed: large providers have several. The library accepts templates as issuers of providers that
 * it knows; anybody there could claim to be an administrator.
 */
export function requireMetadata(metadata: Record<string, unknown>, issuer: string): void {
  if (new URL(String(metadata.issuer)).href !== new URL(issuer).href)
    throw new Error(`its discovery document is of another issuer, ${metadata.issuer}`);
  const isLocal = issuer.startsWith('http:');
  for (const name of ENDPOINTS) {
    const address = metadata[name];
    if (address === undefined && name === OPTIONAL) continue;
    if (typeof address !== 'string' || !isUsable(address, isLocal))
      throw new Error(`its discovery document has no ${name} that may be used`);
  }
}

const isUsable = (address: string, isLocal: boolean) =>
  isSecureUrl(address) && (isLocal || address.startsWith('https:'));
