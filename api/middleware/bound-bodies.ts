import type { Request, RequestHandler, Response } from 'express';
import { WindlassError } from '../../shared/errors.ts';
import { keepsBodyBack } from '../http/expect-continue.ts';
import { sendProblem } from './errors.ts';

/** A body comes within so long, where the route does not say otherwise. */
const BODY_MS = 300_000;
/** What a client still sends after its answer is read and dropped for so long: a reset would take the answer with it. */
const LINGER_MS = 30_000;

/** Bounds how long a request's body may take to come, and how long one that nobody reads is still taken. */
export function boundBodies({ bodyMs = BODY_MS, lingerMs = LINGER_MS } = {}): RequestHandler {
  return (req, res, next) => {
    if (!hasBody(req)) return next();
    const late = setTimeout(() => {
      if (!res.headersSent && !req.complete) sendProblem(res, tooLate(bodyMs));
    }, bodyMs);
    res.locals.lateBody = late;
    req.once('close', () => clearTimeout(late));
    lingerAfterAnswer(req, res, lingerMs);
    next();
  };
}

/** For a body that takes as long as it takes: whoever reads it watches that it comes at all. */
export function takeOwnTime(res: Response): void {
  clearTimeout(res.locals.lateBody);
}

/**
 * RFC 9112, 9.6: a server that closes at once what a client is still sending on resets the connection, and the client
 * may never read its answer. So an answer that overtakes its request's body keeps the connection, whatever the client
 * asked for, until the body has come or the time is up.
 */
function lingerAfterAnswer(req: Request, res: Response, lingerMs: number): void {
  let closes = false;
  const writeHead = res.writeHead;
  res.writeHead = (...head: unknown[]) => {
    closes = !res.shouldKeepAlive;
    if (closes && !req.complete && !keepsBodyBack(req)) res.shouldKeepAlive = true;
    return writeHead.apply(res, head as Parameters<typeof writeHead>);
  };
  res.once('finish', () => {
    if (req.complete || req.destroyed) {
      if (closes) req.socket.end();
      return;
    }
    const { socket } = req;
    const linger = setTimeout(() => socket.destroy(), lingerMs);
    const forget = () => clearTimeout(linger);
    socket.once('close', forget);
    req.once('end', () => {
      forget();
      // The connection goes on to other requests, each of which would leave a listener.
      socket.off('close', forget);
      if (closes) socket.end();
    });
    req.resume();
  });
}

function tooLate(bodyMs: number): WindlassError {
  return new WindlassError('request_timeout', {
    detail: `Request timeout: the body did not come within ${bodyMs / 1_000} seconds.`,
    hint: 'Send it again.',
  });
}

/** RFC 9112, 6: a body is there where one of these is. */
const hasBody = (req: Request) =>
  req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length']) > 0;
