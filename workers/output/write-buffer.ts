import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';

/** A piece is stored as one row at most: rows are read whole. */
const MOST = 1 << 20;
/** Once so much waits, what comes is copied into blocks that are used again. */
const COPY_FROM = 256 << 10;
/** Blocks that are kept for use. */
const KEPT = 12;

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
  /** Gives the batch's blocks back; its bytes must not be used any more. */
  release(): void;
}

/**
 * What waits to be stored. A buffer of a packet that waits with hundreds of others outlives the young ones, and a gigabyte
 * of those spends a third of its time in the garbage collector: so they are copied once there are many.
 */
export class WriteBuffer {
  #pieces: Piece[] = [];
  #bytes: OutputOffsets = { stdout: 0, stderr: 0 };
  readonly #blocks: Buffer[] = [];

  /** How many bytes wait. */
  get bytes(): Readonly<OutputOffsets> {
    return this.#bytes;
  }

  add(stream: OutputStream, bytes: Buffer): void {
    const isBulk = this.#bytes.stdout + this.#bytes.stderr >= COPY_FROM;
    this.#bytes[stream] += bytes.length;
    if (isBulk) this.#copy(stream, bytes);
    else this.#keep(stream, bytes);
  }

  /** Takes all that waits, as one batch. */
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
        if (block && this.#blocks.length < KEPT) this.#blocks.push(block);
    };
    return { parts, release };
  }

  #keep(stream: OutputStream, bytes: Buffer): void {
    const last = this.#pieces.at(-1);
    if (last?.stream === stream && !last.block && last.length + bytes.length <= MOST) {
      last.parts.push(bytes);
      last.length += bytes.length;
    } else {
      this.#pieces.push({ stream, parts: [bytes], length: bytes.length });
    }
  }

  #copy(stream: OutputStream, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      let last = this.#pieces.at(-1);
      if (last?.stream !== stream || !last.block || last.length === MOST) {
        const block = this.#blocks.pop() ?? Buffer.allocUnsafeSlow(MOST);
        last = { stream, parts: [], length: 0, block };
        this.#pieces.push(last);
      }
      const copied = bytes.copy(last.block as Buffer, last.length, at);
      last.length += copied;
      at += copied;
    }
  }
}
