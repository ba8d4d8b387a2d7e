import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WindlassError } from '../../shared/errors/errors.ts';

const refused = new WeakSet<Socket>();

/**
 * Whether the connection's last request was refused here: an error of the parser after that must not become a second
 * answer.
 */
export const wasRefused = (socket: Socket): boolean => refused.has(socket);

/**
 * Throws `bad_request` for what Node's parser accepts and a proxy before us may read in another way: request smuggling,
 * or a request for another host.
 */
export function refuseAmbiguous(req: IncomingMessage): void {
  // Where it begins is as doubtful as where the one before it ended.
  const isLater = refused.has(req.socket);
  const problem = isLater ? afterAmbiguous() : findProblem(req);
  if (!problem) return;
  refused.add(req.socket);
  throw problem;
}

function findProblem({
  rawHeaders,
  headers,
  httpVersion,
}: IncomingMessage): WindlassError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return refusal(`HTTP/${httpVersion} is not spoken here.`, 'Send the request as HTTP/1.1.');
  // RFC 9112, 3.2: without Host, or with more than one.
  const hosts = rawHeaders.filter((name, n) => n % 2 === 0 && /^host$/i.test(name)).length;
  if (hosts > 1)
    return refusal('The request has more than one Host field.', 'Send one Host field.');
  if (hosts === 0 && httpVersion === '1.1')
    return refusal('The request has no Host field.', 'Send a Host field, as HTTP/1.1 requires.');
  // RFC 9112, 6.1: a coding that is not understood, or any in HTTP/1.0.
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0'))
    return refusal(
      `The transfer coding ${coding} is not understood in HTTP/${httpVersion}.`,
      'Send the body with a Content-Length, or chunked in HTTP/1.1.',
    );
  return undefined;
}

const afterAmbiguous = () =>
  refusal('A request before it on this connection was ambiguous.', 'Open another connection.');

const refusal = (detail: string, hint: string) =>
  new WindlassError('bad_request', { detail, hint, headers: { Connection: 'close' } });
