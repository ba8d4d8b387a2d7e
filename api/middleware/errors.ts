import { STATUS_CODES } from 'node:http';
import type { ErrorRequestHandler, RequestHandler, Response } from 'express';
import {
  describeOutage,
  isDatabaseDown,
  isDatabaseFull,
  isDeadlock,
  sqlState,
} from '../../shared/database/connect.ts';
import { ERRORS, notFound, unavailable, WindlassError } from '../../shared/errors/errors.ts';
import type { Logger } from '../../shared/process/log.ts';
import { invalidInput } from '../http/validate.ts';

/** Headers of the representation that was about to be sent; an error must not have them. */
const REPRESENTATION_HEADERS = ['ETag', 'Last-Modified', 'Content-Disposition'];

/** Answers with a problem document (RFC 9457) and repeats detail and hint as headers. */
export function sendProblem(
  res: Response,
  error: WindlassError,
  type = 'application/problem+json',
): void {
  for (const name of REPRESENTATION_HEADERS) res.removeHeader(name);
  res.status(error.status).set(error.headers).set('X-Service-Message', headerText(error.message));
  // A status of a protocol's own, such as 460 of tus, has no reason phrase in Node.
  if (!STATUS_CODES[error.status]) res.statusMessage = ERRORS[error.code].title;
  if (error.hint) res.set('X-Service-Hint', headerText(error.hint));
  res.set('Cache-Control', 'no-store').type(type);
  res.send(JSON.stringify(describeProblem(error, res.locals.requestId)));
}

/** The problem document; `type` links to the code's entry in the API's documentation (RFC 9457, 3.1.1). */
export function describeProblem(error: WindlassError, requestId: string | undefined): object {
  return {
    type: `/api/docs#${error.code}`,
    title: ERRORS[error.code].title,
    status: error.status,
    detail: error.message,
    code: error.code,
    hint: error.hint,
    requestId,
    ...error.extra,
  };
}

/** A header's value is one line of printable ASCII. */
export function headerText(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, '?').slice(0, 1_000);
}

export const refuseUnknownPath: RequestHandler = req => {
  throw notFound(`there is no ${req.path}.`, 'GET / says where to begin.');
};

/** The last middleware. Answers a WindlassError as ERRORS says, any other error with a bare 500 and the request id. */
export function answerErrors(log: Logger): ErrorRequestHandler {
  return (thrown: unknown, req, res, _next) => {
    const error = toWindlassError(thrown);
    if (error.code === 'internal' || isDatabaseFull(thrown))
      log.error(
        { err: thrown, requestId: res.locals.requestId, method: req.method, path: req.path },
        'request failed',
      );
    // The status is sent already: only a truncated answer can tell the client.
    if (res.headersSent) return void res.destroy();
    sendProblem(res, error);
  };
}

export function toWindlassError(error: unknown): WindlassError {
  if (error instanceof WindlassError) return error;
  if (isDatabaseFull(error)) {
    return new WindlassError('insufficient_storage', {
      detail: 'The disk of the database is full. Nothing was changed.',
      hint: 'Ask an administrator to make room on it, then try again.',
      cause: error,
    });
  }
  if (isDatabaseDown(error)) {
    return unavailable(`${describeOutage(error)}.`, 'Try again in a few seconds.', 2, error);
  }
  if (isDeadlock(error)) {
    return unavailable(
      'a deadlock with another request.',
      'Try again. Nothing was changed.',
      1,
      error,
    );
  }
  // PostgreSQL's text has no NUL. Any field of the request may hold it.
  if (sqlState(error) === '22021') {
    return invalidInput(
      [{ field: 'request', problem: 'holds a NUL character' }],
      'Remove it: stored text cannot hold a NUL.',
    );
  }
  return fromBodyParser(error) ?? new WindlassError('internal', { cause: error });
}

const wrongBody = (problem: string, hint: string) =>
  invalidInput([{ field: 'body', problem }], hint);

/** Errors of Express and body-parser have a type or a status. */
function fromBodyParser(error: unknown): WindlassError | undefined {
  const { type, status, limit, setting } = error as {
    type?: string;
    status?: number;
    limit?: number;
    /** See withSetting(). */
    setting?: string;
  };
  switch (type) {
    case 'entity.too.large':
      return new WindlassError('payload_too_large', {
        detail: `The body is larger than ${limit} bytes.`,
        hint: setting
          ? `Send a smaller body. ${setting} (${limit}) sets the limit.`
          : `Send a smaller body: a form may have ${limit} bytes, JSON more.`,
      });
    case 'parameters.too.many':
      return wrongBody('has too many fields', 'Send only the documented fields.');
    case 'entity.parse.failed':
      return wrongBody('is not JSON', 'Send JSON in UTF-8.');
    case 'body.not_utf8':
      return wrongBody('is not UTF-8', 'Send JSON in UTF-8.');
    case 'body.too_deep':
      return wrongBody(
        `is nested more than ${limit} deep`,
        `Send a flatter value. LIMIT_JSON_DEPTH (${limit}) sets the limit.`,
      );
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new WindlassError('unsupported_media_type', { hint: 'Send JSON in UTF-8.' });
    case 'request.aborted':
      return new WindlassError('bad_request', { detail: 'The request ended early.' });
  }
  if (status !== 400) return undefined;
  return error instanceof URIError
    ? new WindlassError('bad_request', {
        detail: 'The address cannot be decoded.',
        hint: 'Escape the path per RFC 3986.',
      })
    : new WindlassError('bad_request', { detail: 'The body cannot be read.' });
}
