import type { Request, Response } from 'express';
import { randomNonce, randomPKCECodeVerifier, randomState } from 'openid-client';
import { z } from 'zod';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { publicPath } from '../http/public-url.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditAs } from '../identity/audit.ts';
import { clientAddress } from '../identity/client-address.ts';
import { readLoginCookies, setLoginCookies } from '../identity/login-cookies.ts';
import { beginLogin } from '../identity/logins.ts';
import type { Oidc } from '../identity/oidc/oidc.ts';
import { beginAgain } from '../identity/oidc/provider-errors.ts';
import { signIn } from '../identity/oidc/sign-in.ts';
import { spendState } from '../identity/oidc/spend-state.ts';
import { safeRedirectTarget } from '../identity/redirect-target.ts';
import type { User } from '../identity/user.ts';
import { operation } from '../openapi/operation.ts';

const target = z.strictObject({ target: z.string().optional() });
/** Providers add members of their own, such as session_state. */
const callback = z.object({
  state: z.string().min(1, 'is missing').max(200),
  code: z.string().optional(),
  iss: z.string().optional(),
  error: z.string().optional(),
});

/** Logins at the identity provider of OIDC_ISSUER: there with a redirect, and back here with a code. */
export default routes('login', (router, api) => {
  const { config, database, passwords } = api;
  const home = `${publicPath(config)}/`;

  resource(router, '/login/oidc', {
    get: operation({
      id: 'beginProviderLogin',
      topic: 'accounts',
      summary: 'Log in at the identity provider, for browsers',
      details:
        'The provider sends the browser back to the callback, which sets the cookies of a login and goes on to `target`, where that is a path on this origin. The login ends after LOGIN_TIMEOUT, however much it is used: then the provider is asked again.',
      query: target,
      for: 'everyone',
      answers: { 302: { means: 'To the provider.', headers: { Location: 'Its login page.' } } },
      errors: ['not_found'],
      handle: async ({ res, query }) => {
        const { cookie, provider } = requireOidc(api.oidc);
        const login = {
          state: randomState(),
          nonce: randomNonce(),
          verifier: randomPKCECodeVerifier(),
          target: safeRedirectTarget(query().target, home),
        };
        const url = await provider.beginLogin(login);
        await cookie.set(res, login);
        redirect(res.set('Cache-Control', 'no-store'), url.href);
      },
    }),
  });

  resource(router, '/login/oidc/callback', {
    get: operation({
      id: 'finishProviderLogin',
      topic: 'accounts',
      summary: 'Where the identity provider sends a browser back to',
      query: callback,
      for: 'everyone',
      answers: {
        302: {
          means: 'Logged in, to `target`.',
          headers: { Location: 'The target.', 'Set-Cookie': 'Both cookies of a login.' },
        },
      },
      errors: ['not_found', 'forbidden', 'conflict', 'too_many_requests'],
      handle: async ({ req, res, query }) => {
        const oidc = requireOidc(api.oidc);
        const { state } = query();
        const address = clientAddress(req);
        oidc.cookie.clear(res, state);
        res.set('Cache-Control', 'no-store');
        const begun = await oidc.cookie.read(req, state);
        if (!begun)
          throw beginAgain('state', 'is of no login that this browser began within 10 minutes');
        const { user, isChanged } = await oidc.exchanges
          .run({ account: '', address }, () =>
            spendState(database.db, state, async () => {
              const subject = await oidc.provider.finishLogin(searchOf(req), begun);
              return signIn(database.db, subject, {
                ...oidc,
                auditAs: username => auditAs({ req, res }, username),
              });
            }),
          )
          .catch(async error => {
            if (error instanceof WindlassError && error.status < 500)
              await passwords.refusals.record({
                key: `${address} (oidc)`,
                username: undefined,
                address,
                action: 'login',
                requestId: res.locals.requestId,
              });
            throw error;
          });
        if (isChanged) api.revocations.forget();
        await logIn({ req, res }, user);
        redirect(res, begun.target);
      },
    }),
  });

  async function logIn({ req, res }: Exchange, user: User): Promise<void> {
    res.locals.user = user;
    api.credentialRates.countLogin(user.username);
    const login = await beginLogin(database.db, user, {
      timeout: config.LOGIN_TIMEOUT,
      instead: readLoginCookies(req),
      auditAs: name => auditAs({ req, res }, name),
    });
    if (!login) throw beginAgain('state', 'is of a user who was changed at the same time');
    if (login.ended.size > 0) api.revocations.forget();
    setLoginCookies({ req, res }, { config, ...login });
  }
});

function requireOidc(oidc: Oidc | undefined): Oidc {
  if (oidc) return oidc;
  throw notFound(
    'this service has no identity provider.',
    'POST /api/login. OIDC_ISSUER sets one.',
  );
}

/**
 * A target is a path as the browser sees it, so nothing is put before it, as res.location() would. A URI consists of
 * ASCII (RFC 3986, 2), and a header can hold nothing else.
 */
function redirect(res: Response, url: string): void {
  res
    .status(302)
    .set('Location', url.replace(/[^\x21-\x7e]+/g, encodeURIComponent))
    .end();
}

/** The query as it was sent: the library reads it. */
function searchOf(req: Request): string {
  const at = req.originalUrl.indexOf('?');
  return at < 0 ? '' : req.originalUrl.slice(at);
}
