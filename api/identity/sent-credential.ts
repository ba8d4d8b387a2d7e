import type { Request } from 'express';
import { readLoginCookie } from './login-cookies.ts';

/** The credential that a request has been sent with, unverified: the same one is of the same user. A link is none. */
export const sentCredential = (req: Request): string | undefined =>
  req.headers.authorization ?? readLoginCookie(req);
