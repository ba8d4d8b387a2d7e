import type { Request, RequestHandler, Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { awaitsContinue } from '../http/expect-continue.ts';
import { bodyTooSlow, MIN_WINDOW_BYTES } from '../http/pace.ts';
import { sendProblem } from '../http/problem.ts';

interface Limits {
  /** See MIN_WINDOW_BYTES. */
  windowMs: number;
  /** The whole body must arrive within this time, unless the route calls disableBodyTimeouts(). Default: 15 windows. */
  bodyMs?: number;
  /** Time in which the rest of a body is read and dropped after the answer: see lingerAfterAnswer(). */
  lingerMs?: number;
  /** Replaces `lingerMs` for a body that may never end. */
  endlessMs?: number;
}

/** Limits how long a request's body may take to arrive, and how long the rest of it is read after the answer. */
export function limitBodyTime(limits: Limits): RequestHandler {
  const { windowMs, bodyMs = 15 * windowMs, lingerMs = 30_000, endlessMs = 2_000 } = limits;
  return (req, res, next) => {
    if (!hasBody(req)) return next();
    watchPace({ req, res }, { windowMs, bodyMs });
    lingerAfterAnswer({ req, res }, { lingerMs, endlessMs });
    next();
  };
}

/** Leaves the pace of a body to its route, such as that of a part of 5 GiB. */
export function disableBodyTimeouts(res: Response): void {
  res.locals.unwatchBody?.();
}

/**
 * Answers 408 when the body is too slow. The pace counts from the first read, and not while the reader is busy: then the
 * client waits.
 */
function watchPace(
  { req, res }: Exchange,
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
 * A connection that is closed while the client still sends is reset, and the client may never read its answer (RFC
 * 9112, 9.6). So an answer sent before the end of the body keeps the connection open until the body has arrived or the
 * time is up.
 */
function lingerAfterAnswer(
  { req, res }: Exchange,
  { lingerMs, endlessMs }: { lingerMs: number; endlessMs: number },
): void {
  let closes = false;
  const writeHead = res.writeHead;
  res.writeHead = (...head: unknown[]) => {
    // RFC 9110, 15.5.9: a server that answers 408 closes the connection.
    const isToClose = /\bclose\b/i.test(String(res.getHeader('Connection') ?? ''));
    closes = !res.shouldKeepAlive || isToClose || res.statusCode === 408;
    const lingers = closes && !req.complete && !awaitsContinue(req);
    if (lingers) res.shouldKeepAlive = true;
    const written = writeHead.apply(res, head as Parameters<typeof writeHead>);
    // Node closes the connection at once where the field says `close`; there is no other way to have it wait.
    if (lingers) (res as unknown as { _last: boolean })._last = false;
    return written;
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
      // The connection serves other requests, each of which would leave a listener.
      socket.off('close', forget);
      if (closes) socket.end();
    });
    req.resume();
  });
}

/** A body that is too slow, comes in tiny pieces, or exceeds its limit without a Content-Length, may never end. */
const isEndless = (req: Request, { statusCode, locals }: Response) =>
  statusCode === 408 ||
  locals.isBodyRefused ||
  (statusCode === 413 && req.headers['transfer-encoding'] !== undefined);

function tooLate(bodyMs: number): WindlassError {
  return new WindlassError('request_timeout', {
    detail: `the body did not arrive within ${bodyMs / 1_000} seconds.`,
    hint: 'Send the request again, faster. The limit is 15 times LIMIT_BODY_SECONDS.',
  });
}

/** RFC 9112, 6: one of these fields announces a body. */
const hasBody = (req: Request) =>
  req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length']) > 0;
