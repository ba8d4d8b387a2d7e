import type { ReadableWritablePair } from 'node:stream/web';
import { setTimeout as delay } from 'node:timers/promises';

const RECONNECT_MS = 100;

/** An HTTP client of the API with Basic authentication. */
export class Client {
  readonly base: string;
  /** The header's value, for requests that are made by other means. */
  readonly authorization: string;

  constructor(base: string, username: string, password: string) {
    this.base = base;
    this.authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }

  /** Returns the response, with any status. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('Authorization', this.authorization);
    if (init.body && !headers.has('Content-Type')) headers.set('Content-Type', 'application/json');
    return fetch(`${this.base}${path}`, { ...init, headers });
  }

  /** The body of a response as bytes. Throws if it is an error. */
  async getBytes(
    path: string,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; type: string | null; bytes: Buffer }> {
    const response = await this.fetch(path, { headers });
    if (!response.ok) throw await toError(response);
    const bytes = Buffer.from(await response.arrayBuffer());
    return { status: response.status, type: response.headers.get('Content-Type'), bytes };
  }

  async get<T>(path: string): Promise<T> {
    return read<T>(await this.fetch(path));
  }

  async post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
    return read<T>(await this.fetch(path, { method: 'POST', body: JSON.stringify(body), headers }));
  }

  async delete(path: string): Promise<void> {
    await read(await this.fetch(path, { method: 'DELETE' }));
  }

  /** The events of a job, up to its end. Reconnects after the last event when the stream breaks off. */
  async *events(job: string): AsyncGenerator<{ event: string; data: Record<string, unknown> }> {
    let last = '';
    for (;;) {
      try {
        const response = await this.fetch(`/api/jobs/${job}/events`, {
          headers: last ? { 'Last-Event-ID': last } : {},
        });
        if (!response.ok || !response.body) return;
        for await (const { event, id, data } of parseEvents(response.body)) {
          if (event === 'end') return;
          last = id || last;
          yield { event, data: JSON.parse(data) };
        }
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      await delay(RECONNECT_MS);
    }
  }
}

async function read<T>(response: Response): Promise<T> {
  if (!response.ok) throw await toError(response);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** An error with the response's message and hint in one line. */
async function toError(response: Response): Promise<Error> {
  const text = await response.text();
  const message = response.headers.get('X-Service-Message') ?? text;
  const hint = response.headers.get('X-Service-Hint') ?? '';
  return new Error(`${response.status}: ${message} ${hint}`.trimEnd());
}

async function* parseEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<{ event: string; id: string; data: string }> {
  let text = '';
  for await (const part of body.pipeThrough(
    new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>,
  )) {
    text += part;
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const fields = new Map(
        frame
          .split('\n')
          .map(line => [
            line.slice(0, line.indexOf(':')),
            line.slice(line.indexOf(':') + 1).trimStart(),
          ]),
      );
      if (fields.has('data'))
        yield {
          event: fields.get('event') ?? 'message',
          id: fields.get('id') ?? '',
          data: fields.get('data') ?? '',
        };
    }
  }
}
