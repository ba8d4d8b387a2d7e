import { connect, type Socket } from 'node:net';
import { waitFor } from '../wait-for.ts';

export interface RawAnswer {
  status: number;
  reason: string;
  /** Names in lower case; of a field that comes twice the last. */
  headers: Record<string, string>;
  body: string;
}

/** A connection on which any bytes can be sent, and the answers that came back, one by one. */
export class RawConnection {
  readonly #socket: Socket;
  #bytes: Buffer = Buffer.alloc(0);
  #closed = false;
  #wasReset = false;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.on('data', bytes => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
    });
    // The server may close while we still send.
    this.#socket.on('error', () => {
      this.#wasReset = true;
    });
    this.#socket.on('close', () => {
      this.#closed = true;
    });
  }

  write(bytes: string | Buffer): void {
    this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** The next answer; undefined where the server closed instead. `bare`: to HEAD, which has no body. */
  async next({ bare = false, timeoutMs = 10_000 } = {}): Promise<RawAnswer | undefined> {
    const read = await waitFor(() => this.#take(bare) ?? (this.#closed ? 'closed' : undefined), {
      what: 'an answer',
      timeoutMs,
      intervalMs: 5,
    });
    return read === 'closed' ? this.#take(bare) : read;
  }

  /** Waits until the server has closed; what came that was not read. */
  async closed(): Promise<string> {
    await waitFor(() => this.#closed, { what: 'the server to close', intervalMs: 5 });
    return this.#bytes.toString('latin1');
  }

  /** Whether what was written could not be delivered: the server had closed, or had not read all. */
  get wasReset(): boolean {
    return this.#wasReset;
  }

  /** Sends nothing more; what was written arrives. */
  finish(): void {
    this.#socket.end();
  }

  end(): void {
    this.#socket.destroy();
  }

  #take(bare: boolean): RawAnswer | undefined {
    const end = this.#bytes.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const [first = '', ...lines] = this.#bytes.subarray(0, end).toString('latin1').split('\r\n');
    const headers = Object.fromEntries(
      lines.map(line => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const [, status = '', reason = ''] = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(first) ?? [];
    const length = bare || /^(204|304)$/.test(status) ? 0 : Number(headers['content-length']);
    if (!(this.#bytes.length >= end + 4 + length)) return undefined;
    const body = this.#bytes.subarray(end + 4, end + 4 + length).toString('utf8');
    this.#bytes = this.#bytes.subarray(end + 4 + length);
    return { status: Number(status), reason, headers, body };
  }
}
