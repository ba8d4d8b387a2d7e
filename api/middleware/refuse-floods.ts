import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Express, Request } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import { credentialOf } from '../concurrency/request-rates.ts';
import type { ApiContext } from '../context.ts';
import { contentPolicy } from '../http/content-policy.ts';
import { describeProblem, headerText } from '../http/problem.ts';
import { clientAddress } from '../identity/client-address.ts';
import { REFUSALS } from '../identity/login-floods.ts';
import { basicCredentials } from './authenticate.ts';
import { tooManyRequests } from './limit-requests.ts';

/** What takes a password in its body, by the paths that Express matches: a login, and a user's new password. */
const WITH_PASSWORD: Record<string, RegExp> = {
  POST: /^(\/api)?\/login\/?(\?|$)/i,
  PUT: /^(\/api)?\/users\/[^/?]+\/?(\?|$)/i,
};
/** The rest of a longer body is not read: the connection ends. */
const MAX_BODY_BYTES = 16 << 10;

const TOO_MANY_PASSWORDS = new WindlassError('too_many_requests', {
  detail: `Too many requests: more than ${REFUSALS} passwords a second from this address are refused.`,
  hint: 'Wait two seconds, and send one at a time.',
  headers: { 'Retry-After': '2' },
});

/**
 * Refuses, before Express sees them, the passwords of an address that goes on sending them although they are refused, and the
 * requests of a user who has sent LIMIT_REQUESTS in this second: that takes 0.05 ms of the process, and within Express 0.1 and more
 * (on a busy machine).
 */
export function refuseFloods(
  app: Express,
  {
    config,
    passwords,
    requestRates,
    metrics,
  }: Pick<ApiContext, 'config' | 'passwords' | 'requestRates' | 'metrics'>,
): RequestListener {
  const refusePassword = prepareRefusal(TOO_MANY_PASSWORDS);
  const refuseRequest = prepareRefusal(tooManyRequests(config.LIMIT_REQUESTS));
  return (req, res) => {
    const refuse = findRefusal(req as Request);
    if (!refuse) return void app(req, res);
    const { method = '', url = '' } = req;
    metrics.recordRequest({ method, originalUrl: url, route: undefined }, 429, 0);
    refuse(req, res);
  };

  /** http/message-classes.ts gives each request Express's prototype, which knows the proxies to trust. */
  function findRefusal(req: Request) {
    const { method, url, headers } = req;
    if (passwords.seesFloods && WITH_PASSWORD[method]?.test(url))
      return passwords.isFlood(clientAddress(req)) && refusePassword;
    const credential = credentialOf(headers);
    // A link says who asks, whatever a browser sends beside it.
    if (credential === undefined || url.includes('link=')) return false;
    // A page of an origin that may ask is told so by allow-origins.ts.
    if (headers.origin !== undefined) return false;
    if (requestRates.isRefused(credential)) return refuseRequest;
    if (!passwords.seesFloods || headers.authorization === undefined) return false;
    const pair = basicCredentials(headers.authorization);
    return pair !== undefined && passwords.isFlood(clientAddress(req), pair) && refusePassword;
  }
}

/** What is the same in each such answer is made once. */
function prepareRefusal(error: WindlassError) {
  const same = Object.entries({
    'Content-Type': 'application/problem+json; charset=utf-8',
    'Content-Security-Policy': contentPolicy(),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'same-origin',
    'Cache-Control': 'no-store',
    'X-Service-Message': headerText(error.message),
    'X-Service-Hint': headerText(error.hint ?? ''),
    ...error.headers,
  }).flat();
  return (req: IncomingMessage, res: ServerResponse) => {
    const requestId = randomUUID();
    const body = JSON.stringify(describeProblem(error, requestId));
    const headers = [...same, 'X-Request-Id', requestId, 'Content-Length', String(body.length)];
    if (!isShort(req)) headers.push('Connection', 'close');
    res.writeHead(error.status, headers).end(req.method === 'HEAD' ? undefined : body);
  };
}

/** Whether all of the body, if there is one, is soon there. */
const isShort = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] === undefined &&
  Number(headers['content-length'] ?? 0) <= MAX_BODY_BYTES;
