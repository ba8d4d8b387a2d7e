import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { Client } from 'minio';
import { StoreSilent } from './s3-errors.ts';

export interface S3Options {
  /** `http://host:port` or `https://…`. */
  endpoint: string;
  region: string;
  bucket: string;
  accessKey: string;
  secretKey: string;
  /** For tests: how long the server may be silent, whatever is asked of it. */
  silenceMs?: number;
}

/** How many connections at once; what finds none free waits for one, and that wait counts as the server's silence. */
const BULK_SOCKETS = 256;
const CONTROL_SOCKETS = 32;
/** Below the 30 s after which MinIO closes a connection that is not used. */
const FREE_SOCKET_MS = 15_000;
const WATCH_MS = 250;

/** What every call to one server shares. */
export class S3Connections {
  readonly options: S3Options;
  readonly isSecure: boolean;
  /** For bytes that come and go; slow clients may hold all of these without keeping anyone from the others. */
  readonly bulk: http.Agent;
  /** For streams that cannot be sent again: each on a connection of its own, for a kept one may just have been closed. */
  readonly fresh: http.Agent;
  readonly control: http.Agent;

  constructor(options: S3Options) {
    this.options = options;
    this.isSecure = new URL(options.endpoint).protocol === 'https:';
    const { Agent } = this.isSecure ? https : http;
    const kept = { keepAlive: true, timeout: FREE_SOCKET_MS, maxFreeSockets: 16 };
    this.bulk = new Agent({ ...kept, maxSockets: BULK_SOCKETS });
    this.fresh = new Agent({ keepAlive: false, maxSockets: BULK_SOCKETS });
    this.control = new Agent({ ...kept, maxSockets: CONTROL_SOCKETS });
  }
}

export interface CallOptions {
  agent: http.Agent;
  /** How long the server may be silent while it is its turn. */
  silenceMs: number;
  signal?: AbortSignal;
}

/**
 * One request to the server. minio-js knows neither deadlines nor signals and may never settle (minio/minio-js#1479), so
 * each call has a client of its own whose transport watches the connection: it is destroyed when the signal says so, and
 * when the server is silent for too long while it is its turn. A source or a reader that is slow has all the time it wants.
 */
export class S3Call {
  readonly client: Client;
  /** The answer's status, where there was one. */
  status: number | undefined;
  /** True where the connection had carried an earlier request: then the server may have closed it meanwhile. */
  reusedSocket = false;
  /** Says whether it is the reader's turn, once the answer's bytes are being read. */
  isReaderSlow: () => boolean = () => false;
  readonly #connections: S3Connections;
  readonly #options: CallOptions;

  constructor(connections: S3Connections, options: CallOptions) {
    this.#connections = connections;
    this.#options = options;
    const { endpoint, region, accessKey, secretKey } = connections.options;
    const { hostname, port } = new URL(endpoint);
    const endPoint = hostname.replace(/^\[|\]$/g, '');
    const request = (given: RequestOptions, answered: (response: IncomingMessage) => void) =>
      this.#request(given, answered);
    this.client = new Client({
      endPoint,
      port: port ? Number(port) : undefined,
      useSSL: connections.isSecure,
      region,
      accessKey,
      secretKey,
      pathStyle: true,
      transport: { request } as unknown as typeof http,
      retryOptions: { disableRetry: true },
    });
    // Over plain HTTP too the body is signed without its SHA-256: that would have to be known before the first byte is sent.
    this.client.enableSHA256 = false;
  }

  #request(given: RequestOptions, answered: (response: IncomingMessage) => void): ClientRequest {
    const { agent, signal } = this.#options;
    const { request } = this.#connections.isSecure ? https : http;
    const sent = request({ ...given, agent, signal }, response => {
      this.status = response.statusCode;
      // minio-js throws away the answer of what it would try again, and leaks its connection; what it does not know it reads.
      if ((response.statusCode ?? 0) >= 500 || [408, 429, 499].includes(response.statusCode ?? 0))
        response.statusCode = 599;
      answered(response);
    });
    sent.once('socket', () => {
      this.reusedSocket = sent.reusedSocket;
    });
    this.#watch(sent);
    return sent;
  }

  #watch(sent: ClientRequest): void {
    const silenceMs = this.#connections.options.silenceMs ?? this.#options.silenceMs;
    let since = performance.now();
    let last = -1;
    const timer = setInterval(() => {
      const moved = countMoved(sent);
      if (moved !== last || isOurTurn(sent) || this.isReaderSlow()) {
        last = moved;
        since = performance.now();
      } else if (performance.now() - since > silenceMs) sent.destroy(new StoreSilent(silenceMs));
    }, WATCH_MS);
    timer.unref();
    sent.once('close', () => clearInterval(timer));
  }
}

/** Bytes that went either way, as far as our own buffers tell. */
function countMoved({ socket }: ClientRequest): number {
  return socket ? socket.bytesWritten - socket.writableLength + socket.bytesRead : 0;
}

/** The server has all that the source gave so far, and more is to come. */
function isOurTurn(sent: ClientRequest): boolean {
  const { socket } = sent;
  if (!socket || socket.connecting || sent.writableEnded) return false;
  return sent.writableLength === 0 && socket.writableLength === 0;
}
