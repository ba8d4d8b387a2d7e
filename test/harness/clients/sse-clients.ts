import { connect, type Socket } from 'node:net';

/** The last chunk of a body (RFC 9112, 7.1). */
const LAST_CHUNK = '\r\n0\r\n\r\n';

/**
 * Many clients of one event stream, each a bare socket that keeps only its offset: an HTTP client's memory would be
 * most of what a test of thousands measures. The job's output must be ASCII.
 */
export class SseClients {
  readonly #request: (last: string) => string;
  readonly #at: { hostname: string; port: number };
  readonly clients: SseClient[] = [];

  constructor(options: { url: string; path: string; authorization: string }) {
    const { hostname, port, host } = new URL(options.url);
    this.#at = { hostname, port: Number(port) };
    this.#request = last =>
      `GET ${options.path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${options.authorization}\r\n${last ? `Last-Event-ID: ${last}\r\n` : ''}\r\n`;
  }

  /** Adds `count` clients, each of which connects again from its last event when its stream breaks off. */
  open(count: number): void {
    for (let n = 0; n < count; n++) {
      const client = new SseClient();
      this.clients.push(client);
      this.#connect(client);
    }
  }

  close(): void {
    for (const client of this.clients) {
      client.closed = true;
      client.socket?.destroy();
    }
  }

  count(is: (client: SseClient) => boolean): number {
    return this.clients.filter(is).length;
  }

  #connect(client: SseClient): void {
    if (client.closed || client.ended) return;
    const socket = connect(this.#at.port, this.#at.hostname);
    client.begin(socket);
    socket.on('connect', () => socket.write(this.#request(client.last)));
    socket.on('data', bytes => client.take(bytes.toString('latin1')));
    socket.on('error', () => {});
    // As an EventSource does, after a while; not all at once.
    socket.on('close', () => setTimeout(() => this.#connect(client), 200 + Math.random() * 800));
  }
}

/** Tells texts apart, whatever pieces they come in. */
export function addUp(text: string, before = 0): number {
  let sum = before;
  for (let at = 0; at < text.length; at++) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) >>> 0;
  return sum;
}

class SseClient {
  socket: Socket | undefined;
  closed = false;
  /** Whether this connection has brought an event. */
  live = false;
  connections = 0;
  last = '';
  /** Whether the stream came to its end, after `end`. */
  ended = false;
  #seenEnd = false;
  /** Bytes of standard output that came. */
  bytes = 0;
  /** addUp() of them. */
  sum = 0;
  /** The status of the last answer; 0 before there is one. */
  status = 0;
  /** Events that did not begin where the last one ended. */
  jumps = 0;
  #rest = '';

  begin(socket: Socket): void {
    this.socket = socket;
    this.live = false;
    this.#rest = '';
  }

  take(text: string): void {
    const frames = (this.#rest + text).split('\n\n');
    this.#rest = frames.pop() ?? '';
    if (!this.live) this.status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? this.status);
    for (const frame of frames) this.#takeFrame(frame);
    this.ended = this.#seenEnd && this.#rest.endsWith(LAST_CHUNK);
  }

  #takeFrame(frame: string): void {
    // The chunks' sizes (RFC 9112, 7.1) and the head stand before a field's line, never within.
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1];
    const data = field('data');
    if (data === undefined) return;
    if (!this.live) this.connections++;
    this.live = true;
    this.last = field('id') ?? this.last;
    if (field('event') === 'end') this.#seenEnd = true;
    if (field('event') !== 'output') return;
    const { stream, offset, text } = JSON.parse(data) as {
      stream: string;
      offset: number;
      text: string;
    };
    if (stream !== 'stdout') return;
    if (offset !== this.bytes) this.jumps++;
    this.bytes = offset + text.length;
    this.sum = addUp(text, this.sum);
  }
}
