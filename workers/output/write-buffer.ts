import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';

/** A piece becomes one chunk row at most, and readers read rows whole. */
const MAX_PIECE_BYTES = 1 << 20;
/** Once this much is buffered, appended bytes are copied into blocks of a pool. */
const COPY_FROM = 256 << 10;
/** Free blocks that the pool keeps. */
const POOL_SIZE = 12;

interface Piece {
  stream: OutputStream;
  parts: Buffer[];
  length: number;
  block?: Buffer;
}

/** Bytes of one stream, in order. */
export interface Part {
  stream: OutputStream;
  bytes: Buffer;
}

export interface Batch {
  parts: Part[];
  /** Returns the batch's blocks to the pool; its bytes must not be used afterwards. */
  release(): void;
}

/**
 * Bytes that wait to be stored. Many are copied into pooled blocks: packets' own buffers would survive young
 * collections, and garbage collection would take a third of the time of a gigabyte.
 */
export class WriteBuffer {
  #pieces: Piece[] = [];
  #bytes: OutputOffsets = { stdout: 0, stderr: 0 };
  readonly #blocks: Buffer[] = [];

  /** Bytes in the buffer, by stream. */
  get bytes(): Readonly<OutputOffsets> {
    return this.#bytes;
  }

  add(stream: OutputStream, bytes: Buffer): void {
    const isBulk = this.#bytes.stdout + this.#bytes.stderr >= COPY_FROM;
    this.#bytes[stream] += bytes.length;
    if (isBulk) this.#copy(stream, bytes);
    else this.#keep(stream, bytes);
  }

  /** Empties the buffer. */
  take(): Batch {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = { stdout: 0, stderr: 0 };
    const parts = pieces.map(({ stream, parts, block, length }) => ({
      stream,
      bytes: block ? block.subarray(0, length) : Buffer.concat(parts),
    }));
    const release = () => {
      for (const { block } of pieces)
        if (block && this.#blocks.length < POOL_SIZE) this.#blocks.push(block);
    };
    return { parts, release };
  }

  #keep(stream: OutputStream, bytes: Buffer): void {
    const last = this.#pieces.at(-1);
    if (last?.stream === stream && !last.block && last.length + bytes.length <= MAX_PIECE_BYTES) {
      last.parts.push(bytes);
      last.length += bytes.length;
    } else {
      this.#pieces.push({ stream, parts: [bytes], length: bytes.length });
    }
  }

  #copy(stream: OutputStream, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      let last = this.#pieces.at(-1);
      if (last?.stream !== stream || !last.block || last.length === MAX_PIECE_BYTES) {
        const block = this.#blocks.pop() ?? Buffer.allocUnsafeSlow(MAX_PIECE_BYTES);
        last = { stream, parts: [], length: 0, block };
        this.#pieces.push(last);
      }
      const copied = bytes.copy(last.block as Buffer, last.length, at);
      last.length += copied;
      at += copied;
    }
  }
}
