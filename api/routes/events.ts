import type { RequestHandler } from 'express';
import type { ApiContext } from '../context.ts';

/** POST /events/(event): matched before any decoding, one log line each. */
export function recordEvents(_api: ApiContext): RequestHandler {
  return (_req, _res, next) => next();
}
