import express, { type RequestHandler } from 'express';
import { z } from 'zod';
import { publicPath } from '../http/public-url.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { refuseCrossSite } from '../http/same-origin.ts';
import { auditAs } from '../identity/audit.ts';
import { clientAddress } from '../identity/client-address.ts';
import { decodeCredentials } from '../identity/encoded-credentials.ts';
import { wrongPassword } from '../identity/identify-sender.ts';
import { readLoginCookies, setLoginCookies } from '../identity/login-cookies.ts';
import { beginLogin } from '../identity/logins.ts';
import { tooManyRefused } from '../identity/password-floods.ts';
import { safeRedirectTarget } from '../identity/redirect-target.ts';
import { enforceBodyLimit } from '../middleware/enforce-body-limit.ts';
import { readJson, STRANGERS_BYTES } from '../middleware/read-json.ts';
import { operation } from '../openapi/operation.ts';

const FORM = 'application/x-www-form-urlencoded';

const credentials = z
  .strictObject({
    username: z.string(),
    password: z.string(),
    target: z.string().optional(),
  })
  .meta({ id: 'Credentials' });
const welcome = z.object({ success: z.literal(true), target: z.string() }).meta({ id: 'Login' });

/** POST /login: exchanges a password for login cookies. */
export default routes('login', (router, api) => {
  const { config, database, passwords } = api;
  const refuseCrossSiteLogin: RequestHandler = (req, _res, next) => {
    refuseCrossSite(req, config);
    next();
  };
  router.post('/login', refuseCrossSiteLogin, readJson(config), readForm(), decodeBody);

  resource(router, '/login', {
    post: operation({
      id: 'beginLogin',
      topic: 'accounts',
      summary: 'Log in, for browsers',
      details:
        'Sets two cookies: `serviceauth` (HttpOnly) and `servicetimeout`, the moment the login ends (ISO 8601, UTC, as it is). Use makes it last longer, for 7 days at most. A changed password ends it. Instead of `username`, `user_name` may be given: then it and `password` are in base64, as clients of Slycat send them.',
      body: credentials,
      bodies: [{ type: FORM, means: 'The same, as a form.', inWords: true }],
      for: 'everyone',
      answers: {
        200: {
          means:
            'Logged in. `target` is the one given where it is a path on this origin, else the home page.',
          json: welcome,
          headers: { 'Set-Cookie': 'Both cookies.' },
        },
      },
      errors: ['unauthorized', 'forbidden', 'too_many_requests'],
      handle: async ({ req, res, body }) => {
        const { username, password, target } = body();
        const address = clientAddress(req);
        // Most are refused earlier: see refuse-floods.ts.
        if (passwords.floods.isFlood(address)) throw tooManyRefused();
        const { requestId } = res.locals;
        const user = await passwords.check({ username, password, address, requestId });
        if (!user) throw wrongPassword();
        api.credentialRates.countLogin(user.username);
        res.locals.user = user;
        const login = await beginLogin(database.db, user, {
          timeout: config.LOGIN_TIMEOUT,
          instead: readLoginCookies(req),
          auditAs: name => auditAs({ req, res }, name),
        });
        if (!login) throw wrongPassword();
        passwords.noteAudited({ username, password, address });
        if (login.ended.size > 0) api.revocations.forget();
        setLoginCookies({ req, res }, { config, ...login });
        res
          .set('Cache-Control', 'no-store')
          .json({ success: true, target: safeRedirectTarget(target, `${publicPath(config)}/`) });
      },
    }),
  });
});

const decodeBody: RequestHandler = (req, _res, next) => {
  req.body = decodeCredentials(req.body);
  next();
};

/** Parses a form's fields into an object. */
function readForm(): RequestHandler[] {
  const toFields: RequestHandler = (req, _res, next) => {
    if (typeof req.body === 'string' && req.is(FORM))
      req.body = Object.fromEntries(new URLSearchParams(req.body));
    next();
  };
  const parse = express.text({ type: FORM, limit: STRANGERS_BYTES, inflate: false });
  return [enforceBodyLimit(parse, STRANGERS_BYTES), toFields];
}
