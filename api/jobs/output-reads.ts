import {
  type OutputPiece,
  type OutputSpan,
  readOutput,
  STREAMS,
} from '../../shared/jobs/output.ts';
import { Turns } from '../identity/turns.ts';
import { encodeOutput, type OutputFrame } from './event-frames.ts';

/** So much at most is held for those who take it later, encoded up to six times as large. */
export const SHORT_BYTES = 16 << 10;
/** Readers of more hold what the database gives at once, a MiB or so, or a connection to the object store. */
const LONG_AT_ONCE = 16;
/** A turn that others wait for ends after so long, however much is left: a client decides how fast it reads. */
const TURN_MS = 1_000;

type Stores = Parameters<typeof readOutput>[0];

/** Bytes of a span. */
export const spanBytes = ({ from, until }: OutputSpan): number =>
  STREAMS.reduce((sum, name) => sum + Math.max(0, until[name] - from[name]), 0);

/** Reads stored output as events; see encodeOutput() for `complete`. */
export class OutputReads {
  readonly #stores: Stores;
  readonly #turns = new Turns(LONG_AT_ONCE);

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** A span of SHORT_BYTES at most; ends exactly where it ends, save for a character that is cut there. */
  async readShort(job: string, span: OutputSpan, complete: boolean): Promise<OutputFrame[]> {
    const frames: OutputFrame[] = [];
    const pieces = cutAtEnd(readOutput(this.#stores, job, span), span.until);
    for await (const frame of encodeOutput(pieces, span.from, complete)) frames.push(frame);
    return frames;
  }

  /**
   * A span of any length, as it comes, once there is a turn; may go on past its end. `take` says whether to go on. True
   * when all of it was taken; else the rest is to be asked for anew.
   */
  async readLong(
    job: string,
    { span, complete }: { span: OutputSpan; complete: boolean },
    take: (frame: OutputFrame) => boolean | Promise<boolean>,
  ): Promise<boolean> {
    return this.#turns.take(async () => {
      const until = performance.now() + TURN_MS;
      const pieces = readOutput(this.#stores, job, span);
      for await (const frame of encodeOutput(pieces, span.from, complete)) {
        const goesOn = take(frame);
        if (!(goesOn === true || (await goesOn))) return false;
        if (this.#turns.areWanted && performance.now() > until) return false;
      }
      return true;
    });
  }
}

async function* cutAtEnd(
  pieces: AsyncIterable<OutputPiece>,
  until: OutputSpan['until'],
): AsyncGenerator<OutputPiece> {
  for await (const { stream, offset, bytes } of pieces) {
    const length = Math.min(bytes.length, until[stream] - offset);
    if (length > 0) yield { stream, offset, bytes: bytes.subarray(0, length) };
  }
}
