import { WindlassError } from '../../../shared/errors/errors.ts';
import type { Config } from '../../../shared/settings/config.ts';
import { FairQueue } from '../../concurrency/fair-queue.ts';
import { publicPath, publicUrl } from '../../http/public-url.ts';
import { type ClaimRule, parseClaimRule } from './claims.ts';
import { IdentityProvider } from './identity-provider.ts';
import { LoginCookie } from './login-cookie.ts';

const CALLBACK = '/api/login/oidc/callback';

/** Anyone may ask: exchanges with the provider that run, and that wait. */
const EXCHANGES = {
  atOnce: 16,
  atOncePerAddress: 8,
  perAccount: Number.POSITIVE_INFINITY,
  perAddress: 64,
  inAll: 256,
};

/** Logins at an identity provider, where OIDC_ISSUER names one. */
export interface Oidc {
  provider: IdentityProvider;
  cookie: LoginCookie;
  exchanges: FairQueue;
  usernameClaim: string;
  users: ClaimRule | undefined;
  administrators: ClaimRule | undefined;
}

/** @param config of the process: its keys may be renewed. */
export function openOidc(config: Config & { SECRET_KEY: string }): Oidc | undefined {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_USERS, OIDC_ADMINISTRATORS } = config;
  if (!OIDC_ISSUER || !OIDC_CLIENT_ID) return undefined;
  const site = publicUrl(config);
  return {
    provider: new IdentityProvider({
      issuer: OIDC_ISSUER,
      clientId: OIDC_CLIENT_ID,
      clientSecret: config.OIDC_CLIENT_SECRET,
      scopes: config.OIDC_SCOPES,
      audience: config.OIDC_AUDIENCE,
      redirectUri: `${site}${CALLBACK}`,
    }),
    cookie: new LoginCookie(config, {
      path: `${publicPath(config)}${CALLBACK}`,
      secure: site.startsWith('https:'),
    }),
    exchanges: new FairQueue(EXCHANGES, tooManyLogins),
    usernameClaim: config.OIDC_USERNAME_CLAIM,
    users: OIDC_USERS ? parseClaimRule(OIDC_USERS) : undefined,
    administrators: OIDC_ADMINISTRATORS ? parseClaimRule(OIDC_ADMINISTRATORS) : undefined,
  };
}

const tooManyLogins = () =>
  new WindlassError('too_many_requests', {
    detail: 'too many logins wait for the identity provider.',
    hint: 'Wait a few seconds, and begin again: GET /api/login/oidc.',
    headers: { 'Retry-After': '5' },
  });
