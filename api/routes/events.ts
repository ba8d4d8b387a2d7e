import type { Request, RequestHandler } from 'express';
import { z } from 'zod';
import { unavailable, WindlassError } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RoutedOperation } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser } from '../identity/current-user.ts';
import { identifyLateSender } from '../identity/identify-sender.ts';
import { withoutLinks } from '../identity/link-text.ts';
import { EventRates } from '../monitoring/event-rates.ts';
import { operation } from '../openapi/operation.ts';

/** The raw request target, perhaps in absolute form (RFC 9112, 3.2.2); clients choose what follows `/events`. */
const TARGET = /^(?:https?:\/\/[^/?]*)?(?:\/api)?\/events(?:\/([^?]*))?(?:\?(.*))?$/is;

/** For the description of the interface; recordEvents() answers. */
const EVENTS: RoutedOperation = {
  path: '/events/*event',
  method: 'post',
  operation: operation({
    id: 'recordEvent',
    topic: 'operations',
    summary: 'Record what a user did: one line in the log of the service',
    details:
      'The path behind /events/ and the query mean what the client likes, and need not even decode. A body is not read, and may have 16 MiB at most (LIMIT_VALUE_BYTES).',
    query: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
    answers: { 204: 'Recorded.' },
    errors: ['payload_too_large', 'address_too_long'],
    handle: ({ req }) => {
      throw new Error(`an event came to a route: ${req.originalUrl}`);
    },
  }),
};

export default routes('raw-body', (router, api) => {
  router.operations.push(EVENTS);
  router.use(recordEvents(api));
});

/**
 * POST /events/(event): writes one log line. A middleware, because a route would refuse a path that cannot be decoded.
 */
function recordEvents(api: ApiContext): RequestHandler {
  const rates = new EventRates(api.config.LIMIT_EVENT_BYTES);
  const limit = api.config.LIMIT_VALUE_BYTES;
  return (req, res, next) => {
    const match = TARGET.exec(req.originalUrl);
    if (!match) return next();
    if (req.method !== 'POST') throw notAllowed(req);
    if (Number(req.get('Content-Length')) > limit) throw tooLarge(limit);
    const [, path = '', query = ''] = match;
    const record = async () => {
      await identifyLateSender(api, { req, res });
      // The access log has no line for this request.
      res.locals.logged = true;
      const { username } = currentUser(res);
      rates.count(username, path.length + query.length);
      const isWritten = api.events.record({
        event: {
          user: username,
          path: withoutLinks(asAscii(path)),
          query: withoutLinks(asAscii(query)),
        },
        requestId: res.locals.requestId,
      });
      if (!isWritten)
        throw unavailable('the log takes no more lines.', 'Send the event again later.', 10);
      res.status(204).end();
    };
    dropBody({ req, res }, limit, error => {
      if (error) next(error);
      else record().catch(next);
    });
  };
}

/** Calls back when the body has arrived or is too large; never when the client left before, or was answered 408. */
function dropBody(
  { req, res }: Exchange,
  limit: number,
  done: (error?: WindlassError) => void,
): void {
  let bytes = 0;
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= limit) return;
    req.off('data', count).off('end', end);
    if (!res.headersSent) done(tooLarge(limit));
  };
  const end = () => {
    if (!res.headersSent) done();
  };
  // A request whose client left emits no `end` any more, although its body has arrived.
  if (req.destroyed && req.complete) end();
  else req.on('data', count).once('end', end);
}

/** Escapes all but visible ASCII as in RFC 3986; valid targets have nothing else. */
function asAscii(text: string): string {
  // Node decodes targets as Latin-1: one character for each byte.
  return text.replace(
    /[^\x21-\x7e]/g,
    byte => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

function notAllowed({ method }: Request): WindlassError {
  return new WindlassError('method_not_allowed', {
    detail: `${method} cannot be used here.`,
    hint: 'Use POST.',
    headers: { Allow: 'POST' },
  });
}

function tooLarge(limit: number): WindlassError {
  return new WindlassError('payload_too_large', {
    detail: `The body is larger than ${limit} bytes.`,
    hint: `Put what the event says into its path and query; its body is not read. LIMIT_VALUE_BYTES (${limit}) sets the limit.`,
  });
}
