import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { Logger } from '../../shared/process/log.ts';
import { describeProblem, headerText } from './problem.ts';
import { wasRefused } from './refuse-ambiguous.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** Answers what Node's parser refuses before it makes a request: too slow, head too large, or not HTTP. */
export function answerClientErrors(
  server: Server,
  { log, headerBytes }: { log: Logger; headerBytes: number },
): void {
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, stream) => {
    const socket = stream as Socket;
    if (wasRefused(socket)) return void socket.destroySoon();
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const problem = explain(error, headerBytes);
    const requestId = randomUUID();
    log.debug({ requestId, status: problem.status, reason: error.code }, 'request refused');
    const body = JSON.stringify(describeProblem(problem, requestId));
    socket.end(
      [
        `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
        'Content-Type: application/problem+json; charset=utf-8',
        `Content-Length: ${Buffer.byteLength(body)}`,
        `X-Request-Id: ${requestId}`,
        ...Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`),
        `X-Service-Message: ${headerText(problem.message)}`,
        ...(problem.hint ? [`X-Service-Hint: ${headerText(problem.hint)}`] : []),
        'Cache-Control: no-store',
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  });
}

function explain(
  { code, rawPacket }: NodeJS.ErrnoException & { rawPacket?: Buffer },
  headerBytes: number,
): WindlassError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new WindlassError('request_timeout', {
        detail: 'The request arrived too slowly.',
        hint: 'Send it again.',
      });
    case 'HPE_HEADER_OVERFLOW':
      // Either the first line exceeds the limit, or the fields after it.
      return rawPacket && !rawPacket.subarray(0, MAX_ADDRESS_LENGTH).includes('\r\n')
        ? addressTooLong()
        : new WindlassError('headers_too_large', {
            detail: `they and the first line have more than ${headerBytes} bytes.`,
            hint: `Send fewer or shorter header fields. LIMIT_HEADER_BYTES (${headerBytes}) sets the limit.`,
          });
    default:
      return new WindlassError('bad_request', {
        detail: 'This is not a valid HTTP request.',
        hint: 'Check whether https is sent to a port that speaks http.',
      });
  }
}

/** Limit on path and query together, in characters. */
export const MAX_ADDRESS_LENGTH = 8_192;

export function addressTooLong(): WindlassError {
  return new WindlassError('address_too_long', {
    detail: `The address is longer than ${MAX_ADDRESS_LENGTH} characters.`,
    hint: 'Send a shorter one.',
  });
}
