import type { Request } from 'express';
import { readLoginCookie } from './login-cookies.ts';

/** The unverified credential of a request: equal ones are of one user. A link is none. */
export const sentCredential = (req: Request): string | undefined =>
  req.headers.authorization ?? readLoginCookie(req);
