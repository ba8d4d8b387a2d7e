/** Bytes of a block; the first of a log grows up to it. */
export const BLOCK_BYTES = 256 << 10;
const FIRST_BYTES = 4 << 10;

/**
 * The bytes of one stream, in blocks. Old blocks can be dropped, and read from the service by their offset when they
 * are looked at again.
 */
export class ByteBlocks {
  readonly #blocks: (Uint8Array | undefined)[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get blockCount(): number {
    return this.#blocks.length;
  }

  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const inBlock = this.#length % BLOCK_BYTES;
      const room = Math.min(bytes.length - at, BLOCK_BYTES - inBlock);
      this.#writable(inBlock + room).set(bytes.subarray(at, at + room), inBlock);
      at += room;
      this.#length += room;
    }
  }

  /** The last block, with room for so many bytes. */
  #writable(size: number): Uint8Array {
    const number = Math.floor(this.#length / BLOCK_BYTES);
    const block = this.#blocks[number];
    if (block && block.length >= size) return block;
    const doubled = Math.max(size, FIRST_BYTES, 2 * (block?.length ?? 0));
    const next = new Uint8Array(number > 0 ? BLOCK_BYTES : Math.min(BLOCK_BYTES, doubled));
    if (block) next.set(block);
    this.#blocks[number] = next;
    return next;
  }

  /** The bytes from `from` to before `to`; undefined where some of them were dropped. */
  read(from: number, to: number): Uint8Array | undefined {
    const end = Math.min(to, this.#length);
    const first = this.#blocks[Math.floor(from / BLOCK_BYTES)];
    if (end <= from) return new Uint8Array();
    const start = from % BLOCK_BYTES;
    if (start + end - from <= BLOCK_BYTES) return first?.subarray(start, start + end - from);
    const all = new Uint8Array(end - from);
    for (let at = from; at < end; ) {
      const block = this.#blocks[Math.floor(at / BLOCK_BYTES)];
      if (!block) return undefined;
      const piece = block.subarray(at % BLOCK_BYTES, (at % BLOCK_BYTES) + end - at);
      all.set(piece, at - from);
      at += piece.length;
    }
    return all;
  }

  has(number: number): boolean {
    return this.#blocks[number] !== undefined;
  }

  /** Drops a full block; the last one is being written. False where there was none to drop. */
  drop(number: number): boolean {
    if (!this.has(number) || number >= Math.floor(this.#length / BLOCK_BYTES)) return false;
    this.#blocks[number] = undefined;
    return true;
  }

  /** Puts a block back that was dropped. */
  restore(number: number, bytes: Uint8Array): void {
    this.#blocks[number] ??= bytes;
  }
}
