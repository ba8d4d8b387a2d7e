import type { RequestHandler } from 'express';
import type { Logger } from '../../shared/log.ts';

/** One line for each request once it has been answered; polls and successes only where debug is wanted. */
export function logRequests(log: Logger): RequestHandler {
  return (req, res, next) => {
    const began = performance.now();
    res.once('close', () => {
      const line = {
        requestId: res.locals.requestId,
        method: req.method,
        path: req.originalUrl.split('?')[0],
        status: res.statusCode,
        user: res.locals.user?.username,
        ms: Math.round(performance.now() - began),
      };
      if (res.statusCode >= 500) log.warn(line, 'request');
      else log.debug(line, 'request');
    });
    next();
  };
}
