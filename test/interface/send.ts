import { type IncomingHttpHeaders, request } from 'node:http';

export interface Credentials {
  username: string;
  password: string;
}

export interface Options {
  headers?: Record<string, string>;
  /** Sent as JSON, unless `headers` name another Content-Type for `body`. */
  json?: unknown;
  body?: string | Uint8Array;
  /** Instead of the user that the suite runs as; null: nobody. */
  as?: Credentials | null;
}

export interface Answer {
  status: number;
  /** The reason phrase. */
  reason: string;
  headers: IncomingHttpHeaders;
  /** The Content-Type without its parameters; empty where there is none. */
  type: string;
  bytes: Buffer;
  text: string;
  /** The body as JSON, whatever it is. */
  json<T = Record<string, unknown>>(): T;
}

/**
 * Sends one request as it is: the target is not parsed as an address, so that what no browser would send can be sent, and
 * the reason phrase, which a browser drops, can be read. On a connection of its own.
 */
export function send(
  url: string,
  given: Options & { method: string; target: string },
): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const { method, target, as, headers = {} } = given;
  const body = given.json === undefined ? given.body : JSON.stringify(given.json);
  return new Promise((resolve, reject) => {
    const req = request(
      {
        hostname,
        port,
        method,
        path: target,
        agent: false,
        headers: {
          ...(as ? { Authorization: basic(as) } : {}),
          ...(given.json === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }),
          ...headers,
        },
      },
      res => {
        const parts: Buffer[] = [];
        res.on('data', part => parts.push(part));
        res.once('error', reject);
        res.once('end', () => {
          // A body that was announced and not sent is not waited for.
          req.destroy();
          const bytes = Buffer.concat(parts);
          resolve({
            status: res.statusCode ?? 0,
            reason: res.statusMessage ?? '',
            headers: res.headers,
            type: (res.headers['content-type'] ?? '').replace(/\s*;.*$/, ''),
            bytes,
            text: bytes.toString('utf8'),
            json: <T>() => JSON.parse(bytes.toString('utf8')) as T,
          });
        });
      },
    );
    req.once('error', reject);
    req.end(body);
  });
}

export const basic = ({ username, password }: Credentials) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
