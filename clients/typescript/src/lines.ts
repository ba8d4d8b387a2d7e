/** `Uint8Array<ArrayBuffer>`, by a name that TypeScript before 5.7 knows, too. */
export type Bytes = ReturnType<Uint8Array['slice']>;

export type OutputStream = 'stdout' | 'stderr';

/** Output as it came, split anywhere. */
export interface Chunk {
  stream: OutputStream;
  /** The offset of its first byte in its stream. */
  offset: number;
  bytes: Bytes;
  /** When it was stored, to the second; absent in output that 0.1.0 stored. */
  time?: string;
}

/** A line of output, without its line break. */
export interface Line {
  stream: OutputStream;
  text: string;
}

/**
 * Splits the output of each stream into lines; what is not UTF-8 becomes U+FFFD. The last line need not end with a line break.
 */
export async function* toLines(chunks: AsyncIterable<Chunk>): AsyncGenerator<Line> {
  const streams = { stdout: new LineSplitter(), stderr: new LineSplitter() };
  for await (const { stream, bytes } of chunks)
    for (const text of streams[stream].take(bytes)) yield { stream, text };
  for (const stream of ['stdout', 'stderr'] as const)
    for (const text of streams[stream].end()) yield { stream, text };
}

class LineSplitter {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** Pieces of the line that has not ended: joined once, however many they are. */
  #pieces: string[] = [];

  take(bytes: Uint8Array): string[] {
    return this.#split(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): string[] {
    const lines = this.#split(this.#decoder.decode());
    const last = this.#pieces.join('');
    return last === '' ? lines : [...lines, last];
  }

  #split(text: string): string[] {
    const [first = '', ...others] = text.split('\n');
    this.#pieces.push(first);
    const rest = others.pop();
    if (rest === undefined) return [];
    const lines = [this.#pieces.join(''), ...others];
    this.#pieces = [rest];
    return lines.map(line => (line.endsWith('\r') ? line.slice(0, -1) : line));
  }
}
