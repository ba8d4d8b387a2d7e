import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditAs } from '../identity/audit.ts';
import { clearLoginCookies, readLoginCookies } from '../identity/login-cookies.ts';
import { endLoginsOf } from '../identity/logins.ts';
import { operation } from '../openapi/operation.ts';

/** DELETE /logout: ends the login of the cookie. */
export default routes('json-body', (router, api) => {
  resource(router, '/logout', {
    delete: operation({
      id: 'endLogin',
      topic: 'accounts',
      summary: 'Log out: end the login of the cookie',
      answers: { 204: { means: 'Ended.', headers: { 'Set-Cookie': 'Removes both cookies.' } } },
      handle: async ({ req, res }) => {
        const secrets = readLoginCookies(req);
        const audit = (username: string) => auditAs({ req, res }, username);
        // Closes all event streams of the user: clients with other credentials reconnect.
        const ended = await endLoginsOf(api.database.db, secrets, audit);
        if (ended.size > 0) api.revocations.forget();
        clearLoginCookies({ req, res }, api.config);
        res.status(204).end();
      },
    }),
  });
});
