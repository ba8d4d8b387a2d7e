import type { Readable } from 'node:stream';

/**
 * A part has 8 MiB, doubled after every 2,500 parts: the 10,000 parts that S3 allows are 293 GiB. A put has two parts in
 * memory: it sends one while it fills the next.
 */
const FIRST_PART_BYTES = 8 << 20;
const DOUBLE_AFTER = 2_500;
/** S3's own limit. */
const MAX_PARTS = 10_000;

/** Bytes of the part with this number, counted from 1; `size` is the object's, where it is known. */
function partSize(number: number, size = 0): number {
  return Math.max(
    FIRST_PART_BYTES * 2 ** Math.floor((number - 1) / DOUBLE_AFTER),
    Math.ceil(size / MAX_PARTS),
  );
}

interface Part {
  /** From 1. */
  number: number;
  /** Overwritten when the part after the next one is requested. */
  bytes: Buffer;
  isLast: boolean;
}

/** Splits the source into parts. The last part is shorter; an empty source has one empty part. */
async function* splitIntoParts(source: AsyncIterable<Buffer>, size?: number): AsyncGenerator<Part> {
  const buffers: Buffer[] = [];
  let number = 1;
  let filled = 0;
  const current = () => {
    const wanted = partSize(number, size);
    const kept = buffers[number % 2];
    if (kept?.length === wanted) return kept;
    // Not zeroed, so that a small object takes little memory.
    const made = Buffer.allocUnsafeSlow(wanted);
    buffers[number % 2] = made;
    return made;
  };
  let buffer = current();
  for await (const piece of source) {
    for (let at = 0; at < piece.length; ) {
      if (filled === buffer.length) {
        yield { number, bytes: buffer, isLast: false };
        if (++number > MAX_PARTS)
          throw new Error(`an object of unknown size may have ${MAX_PARTS} parts`);
        buffer = current();
        filled = 0;
      }
      const copied = piece.copy(buffer, filled, at);
      filled += copied;
      at += copied;
    }
  }
  yield { number, bytes: buffer.subarray(0, filled), isLast: true };
}

interface MultipartPut {
  bytes: AsyncIterable<Buffer>;
  /** The object's size, where it is known. */
  size?: number;
  /** Stores an object of one part; returns its size. */
  putWhole(bytes: Buffer): Promise<number>;
  /** Begins an upload; returns its id. */
  begin(): Promise<string>;
  /** Returns the part's ETag. */
  send(upload: string, part: Part): Promise<string>;
  complete(upload: string, sent: { part: number; etag: string }[]): Promise<unknown>;
  abort(upload: string): Promise<void>;
}

/** Stores an object in parts and returns its size. Destroys the source when a part cannot be sent. */
export async function putMultipart(source: Readable, put: MultipartPut): Promise<number> {
  const sent: { part: number; etag: string }[] = [];
  let upload: string | undefined;
  let sending: Promise<void> = Promise.resolve();
  let total = 0;
  const send = async (id: string, part: Part) => {
    const etag = await put.send(id, part);
    sent.push({ part: part.number, etag });
  };
  try {
    for await (const part of splitIntoParts(put.bytes, put.size)) {
      total += part.bytes.length;
      if (part.isLast && upload === undefined) return await put.putWhole(part.bytes);
      upload ??= await put.begin();
      await sending;
      sending = send(upload, part);
      sending.catch((error: Error) => source.destroy(error));
    }
    await sending;
    await put.complete(upload ?? '', sent);
    return total;
  } catch (error) {
    await sending.catch(() => {});
    if (upload !== undefined) await put.abort(upload).catch(() => {});
    throw error;
  }
}
