import type { RequestHandler } from 'express';
import type { WindlassError } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';

type Context = Pick<ApiContext, 'log' | 'metrics'>;

/**
 * Counts and logs each request when its answer closes: 5xx as a warning with its problem, others at debug. A handler that
 * logs the request itself sets `res.locals.logged`.
 */
export function logRequests({ log, metrics }: Context): RequestHandler {
  return (req, res, next) => {
    const began = performance.now();
    res.once('close', () => {
      const ms = performance.now() - began;
      const isFailed = res.statusCode >= 500;
      // /readyz answers 503 without one.
      const problem = isFailed ? res.locals.problem : undefined;
      metrics.recordRequest(req, { status: res.statusCode, code: faultOf(problem) }, ms / 1_000);
      if (res.locals.logged) return;
      const line = {
        requestId: res.locals.requestId,
        method: req.method,
        path: req.originalUrl.split('?')[0],
        status: res.statusCode,
        code: problem?.code,
        detail: problem?.message,
        user: res.locals.user?.username,
        ms: Math.round(ms),
      };
      if (isFailed) log.warn(line, 'request');
      else log.debug(line, 'request');
    });
    next();
  };
}

/** A full disk, which has a cause, is a fault of the service, and a user over a limit is none. */
const faultOf = (problem: WindlassError | undefined) =>
  problem?.code === 'insufficient_storage' && problem.cause !== undefined
    ? 'unavailable'
    : problem?.code;
