import type { Request, RequestHandler, Response } from 'express';
import { WindlassError } from '../../shared/errors.ts';
import { awaitsContinue } from '../http/expect-continue.ts';
import { sendProblem } from './errors.ts';

/** What of a body must come in each window of LIMIT_BODY_SECONDS, or its end. */
export const MIN_WINDOW_BYTES = 64 << 10;

interface Limits {
  /** The window: see MIN_WINDOW_BYTES. */
  windowMs: number;
  /** A body comes within so long, however fast it seems to come, where the route does not say otherwise: 15 windows. */
  bodyMs?: number;
  /** What a client still sends after its answer is read and dropped for so long: a reset would take the answer with it. */
  lingerMs?: number;
  /** The same, of a body that has no end in sight. */
  endlessMs?: number;
}

/** Bounds how long a request's body may take to come, and how long one that nobody reads is still taken. */
export function limitBodyTime(limits: Limits): RequestHandler {
  const { windowMs, bodyMs = 15 * windowMs, lingerMs = 30_000, endlessMs = 2_000 } = limits;
  return (req, res, next) => {
    if (!hasBody(req)) return next();
    watchPace(req, res, { windowMs, bodyMs });
    lingerAfterAnswer(req, res, { lingerMs, endlessMs });
    next();
  };
}

/** For a body that takes as long as it takes: whoever reads it watches that it comes at all. */
export function disableBodyTimeouts(res: Response): void {
  (res.locals.unwatchBody as (() => void) | undefined)?.();
}

/**
 * Answers 408 where the body is too slow. The pace is looked at from when somebody reads it: until then, and while the
 * reader is busy, it is the client that waits.
 */
function watchPace(
  req: Request,
  res: Response,
  { windowMs, bodyMs }: { windowMs: number; bodyMs: number },
): void {
  let before = 0;
  let window: NodeJS.Timeout | undefined;
  const refuse = (why: WindlassError) => {
    unwatch();
    if (!res.headersSent && !req.complete) sendProblem(res, why);
  };
  const look = () => {
    const { bytesRead } = req.socket;
    if (req.readableFlowing && bytesRead - before < MIN_WINDOW_BYTES)
      return refuse(bodyTooSlow(windowMs));
    before = bytesRead;
    window?.refresh();
  };
  const begin = () => {
    before = req.socket.bytesRead;
    window = setTimeout(look, windowMs);
  };
  const whole = setTimeout(() => refuse(tooLate(bodyMs)), bodyMs);
  const unwatch = () => {
    clearTimeout(whole);
    clearTimeout(window);
    req.off('resume', begin);
  };
  req.once('resume', begin).once('close', unwatch);
  res.locals.unwatchBody = unwatch;
}

/**
 * RFC 9112, 9.6: a server that closes at once what a client is still sending on resets the connection, and the client
 * may never read its answer. So an answer that overtakes its request's body keeps the connection, whatever the client
 * asked for, until the body has come or the time is up.
 */
function lingerAfterAnswer(
  req: Request,
  res: Response,
  { lingerMs, endlessMs }: { lingerMs: number; endlessMs: number },
): void {
  let closes = false;
  const writeHead = res.writeHead;
  res.writeHead = (...head: unknown[]) => {
    // RFC 9110, 15.5.9: whoever answers 408 closes the connection rather than go on waiting.
    closes = !res.shouldKeepAlive || res.statusCode === 408;
    if (closes && !req.complete && !awaitsContinue(req)) res.shouldKeepAlive = true;
    return writeHead.apply(res, head as Parameters<typeof writeHead>);
  };
  res.once('finish', () => {
    if (req.complete || req.destroyed) {
      if (closes) req.socket.end();
      return;
    }
    const { socket } = req;
    const linger = setTimeout(() => socket.destroy(), isEndless(req, res) ? endlessMs : lingerMs);
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

/** Nobody knows how much more there is of a body that passed its limit without having told its length, or drips. */
const isEndless = (req: Request, { statusCode }: Response) =>
  statusCode === 408 || (statusCode === 413 && req.headers['transfer-encoding'] !== undefined);

export function bodyTooSlow(windowMs: number): WindlassError {
  const seconds = windowMs / 1_000;
  return new WindlassError('request_timeout', {
    detail: `Request timeout: less than ${MIN_WINDOW_BYTES >> 10} KiB of the body came in ${seconds} seconds.`,
    hint: `Send it again, all at once. LIMIT_BODY_SECONDS (${seconds}) sets the limit.`,
  });
}

function tooLate(bodyMs: number): WindlassError {
  return new WindlassError('request_timeout', {
    detail: `Request timeout: the body did not come within ${bodyMs / 1_000} seconds.`,
    hint: 'Send it again, faster. The limit is 15 times LIMIT_BODY_SECONDS.',
  });
}

/** RFC 9112, 6: a body is there where one of these is. */
const hasBody = (req: Request) =>
  req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length']) > 0;
