import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import { Client } from 'minio';
import { StallTimeout } from './s3-errors.ts';

export interface S3Options {
  /** `http://host:port` or `https://…`. */
  endpoint: string;
  /** Where clients reach the same server. */
  publicEndpoint?: string;
  region: string;
  bucket: string;
  accessKey: string;
  secretKey: string;
  /** For tests: replaces the stall time-out of every request. */
  stallMs?: number;
}

/** Connections at once. A request that waits for a free one counts that time as the server's stall. */
const BULK_SOCKETS = 256;
const CONTROL_SOCKETS = 32;
/** Below the 30 s after which MinIO closes an idle connection. */
const FREE_SOCKET_MS = 15_000;
const CHECK_MS = 250;

/** The connection pools to one server. */
export class S3Connections {
  readonly options: S3Options;
  readonly isSecure: boolean;
  /** For objects' bytes. Slow clients can use up all of these and leave `control` free. */
  readonly bulk: http.Agent;
  /** For streams that cannot be sent again: the server may close a kept connection at that moment. */
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

/** The options of the server for a client of the minio package. */
function serverOf({ endpoint, region, accessKey, secretKey }: S3Options) {
  const { protocol, hostname, port } = new URL(endpoint);
  return {
    endPoint: hostname.replace(/^\[|\]$/g, ''),
    port: port ? Number(port) : undefined,
    useSSL: protocol === 'https:',
    region,
    accessKey,
    secretKey,
    pathStyle: true,
  };
}

/** Signs an address of an object for clients of the server. Sends nothing. */
export function presignGet(
  options: S3Options,
  { key, seconds, headers }: { key: string; seconds: number; headers: Record<string, string> },
): Promise<string> {
  const endpoint = options.publicEndpoint ?? options.endpoint;
  const client = new Client(serverOf({ ...options, endpoint }));
  return client.presignedGetObject(options.bucket, key, seconds, headers);
}

export interface S3RequestOptions {
  agent: http.Agent;
  /** How long no byte may go either way while the server is expected to act. */
  stallMs: number;
  signal?: AbortSignal;
}

/**
 * One request to the server. minio-js knows neither deadlines nor signals and may never settle (minio/minio-js#1479),
 * so each request has a client whose transport ends the connection on abort, or when the server stalls. Waiting for a
 * slow source or reader does not count.
 */
export class S3Request {
  readonly client: Client;
  /** The answer's status, where there was one. */
  status: number | undefined;
  /** The connection served an earlier request: the server may have closed it meanwhile. */
  reusedSocket = false;
  /** Whether the server waits for the reader of the answer's bytes. */
  isReaderSlow: () => boolean = () => false;
  readonly #connections: S3Connections;
  readonly #options: S3RequestOptions;

  constructor(connections: S3Connections, options: S3RequestOptions) {
    this.#connections = connections;
    this.#options = options;
    const request = (given: RequestOptions, answered: (response: IncomingMessage) => void) =>
      this.#request(given, answered);
    this.client = new Client({
      ...serverOf(connections.options),
      transport: { request } as unknown as typeof http,
      retryOptions: { disableRetry: true },
    });
    // The signature leaves out the body's SHA-256, over plain HTTP too: it is not known before the last byte.
    this.client.enableSHA256 = false;
  }

  #request(given: RequestOptions, answered: (response: IncomingMessage) => void): ClientRequest {
    const { agent, signal } = this.#options;
    const { request } = this.#connections.isSecure ? https : http;
    const sent = request({ ...given, agent, signal }, response => {
      this.status = response.statusCode;
      // For a status that it would retry, minio-js drops the answer and leaks its connection; for an unknown one it
      // reads the body.
      if ((response.statusCode ?? 0) >= 500 || [408, 429, 499].includes(response.statusCode ?? 0))
        response.statusCode = 599;
      answered(response);
    });
    sent.once('socket', () => {
      this.reusedSocket = sent.reusedSocket;
    });
    this.#destroyWhenStalled(sent);
    return sent;
  }

  #destroyWhenStalled(sent: ClientRequest): void {
    const stallMs = this.#connections.options.stallMs ?? this.#options.stallMs;
    let since = performance.now();
    let last = -1;
    const timer = setInterval(() => {
      const bytes = countTransferred(sent);
      if (bytes !== last || waitsForSource(sent) || this.isReaderSlow()) {
        last = bytes;
        since = performance.now();
      } else if (performance.now() - since > stallMs) sent.destroy(new StallTimeout(stallMs));
    }, CHECK_MS);
    timer.unref();
    sent.once('close', () => clearInterval(timer));
  }
}

/** Bytes transferred in both directions, without those in this process's buffers. */
function countTransferred({ socket }: ClientRequest): number {
  return socket ? socket.bytesWritten - socket.writableLength + socket.bytesRead : 0;
}

/** The server has all that the source gave so far, and the source has not ended. */
function waitsForSource(sent: ClientRequest): boolean {
  const { socket } = sent;
  if (!socket || socket.connecting || sent.writableEnded) return false;
  return sent.writableLength === 0 && socket.writableLength === 0;
}
