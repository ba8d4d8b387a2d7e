import type { Request, Response } from 'express';
import { WindlassError } from '../../shared/errors.ts';
import { type Offsets, type OutputPiece, STREAMS, type Stream } from '../../shared/jobs/output.ts';
import type { ApiContext } from '../context.ts';
import { drained } from '../http/drained.ts';
import type { JobSummary } from './job-summary.ts';
import { untilNoLongerWaiting } from './run-request.ts';

/** A comment this often keeps proxies from closing a quiet stream. */
const COMMENT_MS = 15_000;
/** An event carries at most so many bytes of output. */
const MAX_EVENT = 64 << 10;

/**
 * GET /jobs/(id)/events: server-sent events (WHATWG HTML, 9.2). `state` first, then `output` from the start or from
 * Last-Event-ID on, `progress`, and `state` again at each change; ends after the end state once all output was sent.
 */
export async function streamJobEvents(
  api: ApiContext,
  req: Request,
  res: Response,
  row: JobSummary,
): Promise<void> {
  const at = readLastEventId(req);
  res
    .status(200)
    .type('text/event-stream')
    .set('Cache-Control', 'no-store')
    .set('X-Accel-Buffering', 'no');
  if (req.method === 'HEAD') return void res.end();
  res.flushHeaders();
  const { signal } = untilNoLongerWaiting(api, res);
  const stream = new EventStream(res, at);
  const comment = setInterval(() => stream.comment(), COMMENT_MS);
  try {
    let current = row;
    for (;;) {
      await stream.job(current);
      // An ended job's output is complete: what is read now is all.
      await stream.output(
        api.jobs.output.read({ db: api.database.db, objects: api.objects }, row.id, {
          from: stream.at,
          until: { stdout: current.stdoutBytes, stderr: current.stderrBytes },
          signal,
        }),
        current.finished !== null,
      );
      if (current.finished) {
        await stream.end(current);
        break;
      }
      const next = await api.jobs.changed(row.id, current.version, signal);
      if (!next) break;
      current = next;
    }
    res.end();
  } catch (error) {
    // Cut off, not ended: the client sees that more would have come and asks again from its last event on.
    res.destroy();
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(comment);
  }
}

function readLastEventId(req: Request): Offsets {
  const given = req.get('Last-Event-ID');
  if (given === undefined || given === '') return { stdout: 0, stderr: 0 };
  const [, stdout, stderr] = /^(\d{1,15})-(\d{1,15})$/.exec(given) ?? [];
  if (stdout === undefined || stderr === undefined) {
    throw new WindlassError('invalid_input', {
      detail: 'Invalid parameters: Last-Event-ID: must be the id of an event of this job.',
      hint: 'Leave it out to begin at the start.',
    });
  }
  return { stdout: Number(stdout), stderr: Number(stderr) };
}

const EMPTY = Buffer.alloc(0);

class EventStream {
  /** How far the output was sent. */
  readonly at: Offsets;
  readonly #res: Response;
  #state: string | undefined;
  #progress = '';

  constructor(res: Response, at: Offsets) {
    this.#res = res;
    this.at = { ...at };
  }

  comment(): void {
    this.#res.write(':\n\n');
  }

  async job(row: JobSummary): Promise<void> {
    // The end state is told when all output was sent, by end(); but the present state always comes first.
    if (this.#state === undefined || (!row.finished && row.state !== this.#state))
      await this.#sendState(row);
    const progress = JSON.stringify({
      progress: row.progress,
      ...(row.message ? { message: row.message } : {}),
    });
    if (row.progress === null || progress === this.#progress) return;
    this.#progress = progress;
    await this.#send('progress', progress);
  }

  /** Sends stored output; a character of which only a part is stored waits for the rest, unless nothing more will come. */
  async output(pieces: AsyncIterable<OutputPiece>, complete: boolean): Promise<void> {
    const rest: Record<Stream, Buffer> = { stdout: EMPTY, stderr: EMPTY };
    for await (const { stream, offset, bytes } of pieces) {
      // Pieces may overlap what was sent; offsets decide.
      const from = this.at[stream] + rest[stream].length;
      let left = Buffer.concat([rest[stream], bytes.subarray(Math.max(0, from - offset))]);
      for (;;) {
        const part = cutAtCharacter(left.subarray(0, MAX_EVENT));
        if (part.length === 0) break;
        await this.#sendOutput(stream, part);
        left = left.subarray(part.length);
      }
      rest[stream] = left;
    }
    if (!complete) return;
    for (const stream of STREAMS)
      if (rest[stream].length > 0) await this.#sendOutput(stream, rest[stream]);
  }

  async end(row: JobSummary): Promise<void> {
    if (row.state !== this.#state) await this.#sendState(row);
  }

  async #sendOutput(stream: Stream, bytes: Buffer): Promise<void> {
    const offset = this.at[stream];
    this.at[stream] += bytes.length;
    const text = decodeUtf8(bytes);
    const data =
      text === undefined
        ? { stream, offset, base64: bytes.toString('base64') }
        : { stream, offset, text };
    await this.#send('output', JSON.stringify(data));
  }

  async #sendState(row: JobSummary): Promise<void> {
    this.#state = row.state;
    await this.#send(
      'state',
      JSON.stringify({ state: row.state, ...(row.error ? { error: row.error } : {}) }),
    );
  }

  async #send(event: string, data: string): Promise<void> {
    const frame = `event: ${event}\nid: ${this.at.stdout}-${this.at.stderr}\ndata: ${data}\n\n`;
    if (this.#res.destroyed) return;
    if (!this.#res.write(frame)) await drained(this.#res);
  }
}

/** The bytes up to the last whole UTF-8 character; where they are not UTF-8 at the end, all of them. */
export function cutAtCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte < 0xc0) continue;
    // Never the first byte of a character: there is nothing to wait for.
    if (byte < 0xc2 || byte > 0xf4) return bytes;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needs > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
