import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { abortable } from '../../shared/process/abort.ts';
import { RELEASE } from '../../shared/process/release.ts';
import { ReceiverProblem, resolveReceiver } from './resolve-receiver.ts';

/** An attempt, from the name to the end of the answer. */
const ATTEMPT_MS = 15_000;
/** The most bytes of an answer, which nobody uses, that are read before the close. */
const ANSWER_BYTES = 16_384;
/** Answers of a status below 200, such as 103, before the one that counts. */
const INTERIM_ANSWERS = 100;

export interface PostOptions {
  headers: Record<string, string>;
  body: string;
  isPrivateAllowed: boolean;
  signal: AbortSignal;
  timeoutMs?: number;
  lookup?: (name: string) => Promise<string[]>;
}

/** Posts a body to the checked addresses of a URL, each until one takes the connection, and returns the status. Follows no redirect. Throws ReceiverProblem. */
export async function postMessage(url: string, options: PostOptions): Promise<number> {
  const { timeoutMs = ATTEMPT_MS } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([timeout, options.signal]);
  try {
    const to = new URL(url);
    const addresses = await abortable(resolveReceiver(to.hostname, options), signal);
    return await send(to, addresses, { ...options, signal, timeoutMs });
  } catch (error) {
    if (timeout.aborted) throw new ReceiverProblem(`No answer came within ${timeoutMs / 1_000} s.`);
    if (error instanceof ReceiverProblem || options.signal.aborted) throw error;
    throw new ReceiverProblem(describe(error));
  }
}

async function send(
  to: URL,
  addresses: string[],
  { headers, body, signal, timeoutMs }: PostOptions & { timeoutMs: number },
): Promise<number> {
  // Passed on to net.connect(); no type of a request knows it.
  const connecting = {
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.ceil(timeoutMs / (addresses.length + 1)),
  };
  const isTls = to.protocol === 'https:';
  const name = to.hostname.replace(/^\[|\]$/g, '');
  const request = (isTls ? requestHttps : requestHttp)({
    host: name,
    // Not asked where the name is an address itself.
    lookup: (_name, _options, callback) =>
      callback(
        null,
        addresses.map(address => ({ address, family: isIP(address) })),
      ),
    ...connecting,
    port: to.port || (isTls ? 443 : 80),
    path: to.pathname + to.search,
    method: 'POST',
    // The certificate is for the name; SNI admits no address (RFC 6066, 3).
    ...(isIP(name) ? {} : { servername: name }),
    agent: false,
    signal,
    headers: {
      Host: to.host,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'User-Agent': `Windlass/${RELEASE}`,
      Connection: 'close',
      ...headers,
    },
  });
  // It is told by answerOf(), or comes after the answer.
  request.on('error', () => {});
  request.end(body);
  const response = await answerOf(request);
  try {
    let bytes = 0;
    for await (const chunk of response) {
      bytes += (chunk as Buffer).length;
      if (bytes > ANSWER_BYTES) break;
    }
  } catch {
    // The status has come: what follows it is of no interest.
  } finally {
    response.destroy();
  }
  return response.statusCode ?? 0;
}

/** Settles at the latest when the request is destroyed, which its signal does. */
function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let interim = 0;
    request.once('response', resolve);
    // An unrequested change of the protocol. Without a listener only `close` would be emitted.
    request.once('upgrade', (response: IncomingMessage, socket: Duplex) => {
      socket.destroy();
      resolve(response);
    });
    request.on('information', () => {
      if (++interim > INTERIM_ANSWERS)
        request.destroy(new ReceiverProblem('The receiver sent only interim answers.'));
    });
    request.once('error', reject);
    request.once('close', () => reject(new Error('the connection was closed')));
  });
}

function describe(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return `The receiver could not be reached: ${code ?? message}.`;
}
