import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The id that the client has given the request in X-Request-Id, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : randomUUID();
}
