import type { Request, RequestHandler, Response } from 'express';
import { WindlassError } from '../../shared/errors.ts';
import type { PasswordCheck, User } from '../password-check.ts';

/** The user of an authenticated request. */
export function currentUser(res: Response): User {
  const user: User | undefined = res.locals.user;
  if (!user) throw new WindlassError('unauthorized');
  return user;
}

export function requireAdministrator(res: Response): User {
  const user = currentUser(res);
  if (!user.administrator) {
    throw new WindlassError('forbidden', {
      detail: 'Forbidden: only a server administrator may do this.',
      hint: 'Ask an administrator.',
    });
  }
  return user;
}

/** Everything behind this needs credentials: HTTP Basic (RFC 7617). */
export function authenticate(passwords: PasswordCheck): RequestHandler {
  return async (req, res, next) => {
    const given = basicCredentials(req);
    const user = given && (await passwords.check(given.username, given.password));
    if (!user) throw refusal(req, given !== undefined);
    res.locals.user = user;
    next();
  };
}

function basicCredentials(req: Request): { username: string; password: string } | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+=*) *$/i.exec(req.get('Authorization') ?? '')?.[1];
  if (!encoded) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0
    ? undefined
    : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function refusal(req: Request, given: boolean): WindlassError {
  // A script in a page gets a scheme that makes no browser show a dialog.
  const scripted = req.get('X-Requested-With') !== undefined;
  return new WindlassError('unauthorized', {
    detail: given
      ? 'Credentials required: the user name or password is wrong.'
      : 'Credentials required.',
    hint: 'Send a user name and password by HTTP Basic authentication.',
    headers: {
      'WWW-Authenticate': scripted ? 'Bearer' : 'Basic realm="Windlass", charset="UTF-8"',
    },
  });
}
