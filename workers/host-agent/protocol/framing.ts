const NEWLINE = 10;
const MAX_LINE = 65_536;

export interface FrameHandler {
  /** One line without its newline; data headers are left out. */
  onLine(line: string): void;
  /** A piece of a frame's body; bytes is a view of the received chunk, never a copy. */
  onData(piece: { run: number; stream: 'stdout' | 'stderr'; offset: number; bytes: Buffer }): void;
}

/**
 * Parses the agent's output: lines, and after a line `data RUN o|e OFFSET LENGTH` so many raw bytes, which are passed
 * on as they arrive.
 */
export class FrameParser {
  readonly #handler: FrameHandler;
  #line = '';
  #body = { run: 0, stream: 'stdout' as 'stdout' | 'stderr', offset: 0 };
  #left = 0;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Throws an Error on a line that is too long. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length)
      at = this.#left > 0 ? this.#takeBody(chunk, at) : this.#takeLine(chunk, at);
  }

  #takeBody(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    const offset = this.#body.offset;
    this.#left -= end - at;
    this.#body.offset += end - at;
    this.#handler.onData({ ...this.#body, offset, bytes: chunk.subarray(at, end) });
    return end;
  }

  #takeLine(chunk: Buffer, at: number): number {
    const newline = chunk.indexOf(NEWLINE, at);
    // latin1 keeps every byte, so that a character split over two chunks is decoded once the line is complete.
    this.#line += chunk.toString('latin1', at, newline < 0 ? chunk.length : newline);
    if (this.#line.length > MAX_LINE) throw new Error('The agent sent a line without end.');
    if (newline < 0) return chunk.length;
    const line = Buffer.from(this.#line, 'latin1').toString('utf8');
    this.#line = '';
    const header = /^data (\d+) ([oe]) (\d+) (\d+)$/.exec(line);
    if (header) {
      this.#body = {
        run: Number(header[1]),
        stream: header[2] === 'o' ? 'stdout' : 'stderr',
        offset: Number(header[3]),
      };
      this.#left = Number(header[4]);
    } else {
      this.#handler.onLine(line);
    }
    return newline + 1;
  }
}
