import { STATUS_CODES } from 'node:http';
import type { Response } from 'express';
import { ERRORS, type WindlassError } from '../../shared/errors/errors.ts';

/** Headers of the representation that was about to be sent; an error must not have them. */
const REPRESENTATION_HEADERS = ['ETag', 'Last-Modified', 'Content-Disposition'];

/**
 * Answers with a problem document (RFC 9457) and repeats detail and hint as headers. Log and metrics read
 * `res.locals.problem`.
 */
export function sendProblem(
  res: Response,
  error: WindlassError,
  type = 'application/problem+json',
): void {
  res.locals.problem = error;
  for (const name of REPRESENTATION_HEADERS) res.removeHeader(name);
  res.status(error.status).set(error.headers).set('X-Service-Message', headerText(error.message));
  // A status of a protocol's own, such as 460 of tus, has no reason phrase in Node.
  if (!STATUS_CODES[error.status]) res.statusMessage = ERRORS[error.code].title;
  if (error.hint) res.set('X-Service-Hint', headerText(error.hint));
  res.set('Cache-Control', 'no-store').set('Content-Type', `${type}; charset=utf-8`);
  const body = JSON.stringify(describeProblem(error, res.locals.requestId));
  // Not send(): it sends no body where POST was overridden to HEAD, which the client does not know. Node sends none to HEAD.
  res.set('Content-Length', String(Buffer.byteLength(body))).end(body);
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
