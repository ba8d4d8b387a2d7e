import type { Response } from 'express';
import { forbidden, WindlassError } from '../../shared/errors/errors.ts';
import type { User } from './user.ts';

/** The user of an authenticated request. */
export function currentUser(res: Response): User {
  const { user } = res.locals;
  if (!user) throw new WindlassError('unauthorized');
  return user;
}

/**
 * Whose share of this process a request uses. Whoever has links of a user has a share of their own, so that they keep nothing
 * from that user. No name of a user has a space.
 */
export function shareOf(res: Response): string {
  const { username } = currentUser(res);
  return res.locals.by === 'link' ? `${username} by links` : username;
}

/** When the token or the link of an authenticated request expires; undefined where it does not. */
export const credentialEnds = (res: Response): Date | undefined => res.locals.ends;

/** Like credentialEnds(); for a cookie, when its login ends unless it is used. */
export const identityEnds = (res: Response): Date | undefined =>
  res.locals.ends ?? res.locals.loginEnds;

export function requireAdministrator(res: Response): User {
  const user = currentUser(res);
  assertAdministrator(user);
  return user;
}

export function assertAdministrator({ administrator }: Pick<User, 'administrator'>): void {
  if (administrator) return;
  throw forbidden('only a server administrator may do this.', 'Ask an administrator.');
}

/** The rule of `refusesTokens`: see api/openapi/operation.ts. */
export function refuseTokenCredentials(res: Response): void {
  if (res.locals.by !== 'token') return;
  throw forbidden(
    'a token may not change hosts, users, tokens, webhooks or workers.',
    'Use your user name and password, or a login.',
  );
}

/** Refuses a token of scope `read`, where more than reading is asked for. */
export function refuseReadToken(res: Response): void {
  if (res.locals.scope !== 'read') return;
  throw forbidden(
    'this token may only read, and reach no host.',
    'Make a token with "scope": "write".',
  );
}
