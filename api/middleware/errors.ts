import type { ErrorRequestHandler, RequestHandler } from 'express';
import { isDatabaseFull } from '../../shared/database/connect.ts';
import { notFound } from '../../shared/errors/errors.ts';
import type { Logger } from '../../shared/process/log.ts';
import type { Exchange } from '../http/exchange.ts';
import { sendProblem } from '../http/problem.ts';
import { toWindlassError } from '../http/to-windlass-error.ts';
import { challengeFor } from './authentication-challenge.ts';

export const refuseUnknownPath: RequestHandler = req => {
  throw notFound(`there is no ${req.path}.`, 'GET / says where to begin.');
};

/**
 * The last middleware. Answers a WindlassError as ERRORS says, any other error with a bare 500 and the request id. `explain`
 * may find another error behind one; where it returns undefined the answer is sent at once, before a connection that has
 * become unreadable is closed.
 */
export function answerErrors(
  log: Logger,
  explain: (error: unknown) => Promise<unknown> | undefined,
): ErrorRequestHandler {
  const answer = (thrown: unknown, { req, res }: Exchange) => {
    const error = toWindlassError(thrown);
    if (error.code === 'internal' || isDatabaseFull(thrown))
      log.error(
        { err: thrown, requestId: res.locals.requestId, method: req.method, path: req.path },
        'request failed',
      );
    // The status is sent already: only a truncated answer can tell the client.
    if (res.headersSent) return void res.destroy();
    if (error.status === 401) res.set('WWW-Authenticate', challengeFor({ req, res }));
    sendProblem(res, error);
  };
  return (thrown: unknown, req, res, _next) => {
    const explained = explain(thrown);
    if (!explained) return answer(thrown, { req, res });
    return explained.then(found => answer(found, { req, res }));
  };
}
