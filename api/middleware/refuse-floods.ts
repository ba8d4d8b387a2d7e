import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Express, Request } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';
import { contentPolicy } from '../http/content-policy.ts';
import { describeProblem, headerText } from '../http/problem.ts';
import { clientAddress } from '../identity/client-address.ts';
import { REFUSALS } from '../identity/login-floods.ts';
import { basicCredentials } from './authenticate.ts';

/** The path of POST /login, as Express matches it. */
const LOGIN_PATH = /^(\/api)?\/login\/?(\?|$)/i;
/** The rest of a longer body is not read: the connection ends. */
const MAX_BODY_BYTES = 16 << 10;

const PROBLEM = new WindlassError('too_many_requests', {
  detail: `Too many requests: more than ${REFUSALS} passwords a second from this address are refused.`,
  hint: 'Wait two seconds, and send one at a time.',
});
const HEADERS = Object.entries({
  'Content-Type': 'application/problem+json; charset=utf-8',
  'Content-Security-Policy': contentPolicy(),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'Retry-After': '2',
  'X-Service-Message': headerText(PROBLEM.message),
  'X-Service-Hint': headerText(PROBLEM.hint ?? ''),
}).flat();

/**
 * Refuses the passwords of an address that goes on sending them although they are refused, before Express sees them: that takes
 * 0.05 ms of the process, and within Express 0.1 (on a busy machine).
 */
export function refuseFloods(
  app: Express,
  { passwords, metrics }: Pick<ApiContext, 'passwords' | 'metrics'>,
): RequestListener {
  return (req, res) => {
    if (!passwords.seesFloods || !isFlood(req as Request)) return void app(req, res);
    const { method = '', url = '' } = req;
    metrics.recordRequest({ method, originalUrl: url, route: undefined }, PROBLEM.status, 0);
    const requestId = randomUUID();
    const body = JSON.stringify(describeProblem(PROBLEM, requestId));
    const headers = [...HEADERS, 'X-Request-Id', requestId, 'Content-Length', String(body.length)];
    if (!isShort(req)) headers.push('Connection', 'close');
    res.writeHead(PROBLEM.status, headers).end(method === 'HEAD' ? undefined : body);
  };

  /** http/message-classes.ts gives each request Express's prototype, which knows the proxies to trust. */
  function isFlood(req: Request): boolean {
    if (req.method === 'POST' && LOGIN_PATH.test(req.url))
      return passwords.isFlood(clientAddress(req));
    const { authorization } = req.headers;
    // A link says who asks, whatever a browser sends beside it.
    if (!authorization || req.url.includes('link=')) return false;
    const pair = basicCredentials(authorization);
    return pair !== undefined && passwords.isFlood(clientAddress(req), pair);
  }
}

/** Whether all of the body, if there is one, is soon there. */
const isShort = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] === undefined &&
  Number(headers['content-length'] ?? 0) <= MAX_BODY_BYTES;
