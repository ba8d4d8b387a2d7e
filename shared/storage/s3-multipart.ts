import type { Readable } from 'node:stream';

/**
 * Parts are of 8 MiB and grow as an object does, doubling every 2,500: S3 allows 10,000 parts, which is 293 GiB in all.
 * One part is on its way while the next one fills, so a put holds two of them.
 */
const PART = 8 << 20;
const GROWS_AFTER = 2_500;
/** What S3 allows. */
const MAX_PARTS = 10_000;

/** Bytes of the part with this number, from 1; `size` is the object's, where it is known. */
function partSize(number: number, size = 0): number {
  return Math.max(PART * 2 ** Math.floor((number - 1) / GROWS_AFTER), Math.ceil(size / MAX_PARTS));
}

interface Part {
  /** From 1. */
  number: number;
  /** Lent until the part after the next one is asked for. */
  bytes: Buffer;
  isLast: boolean;
}

/** The source cut into parts; the last one is shorter, and of an empty source the only one is empty. */
async function* cutIntoParts(source: AsyncIterable<Buffer>, size?: number): AsyncGenerator<Part> {
  const buffers: Buffer[] = [];
  let number = 1;
  let filled = 0;
  const current = () => {
    const wanted = partSize(number, size);
    const kept = buffers[number % 2];
    if (kept?.length === wanted) return kept;
    // Not touched until it is filled, so that a small object takes little.
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
  /** Of the whole object, and how many, where that is known. */
  bytes: AsyncIterable<Buffer>;
  size?: number;
  /** Stores an object of one part alone; its size. */
  putWhole(bytes: Buffer): Promise<number>;
  /** Begins an upload; its id. */
  begin(): Promise<string>;
  /** The part's ETag. */
  send(upload: string, part: Part): Promise<string>;
  complete(upload: string, sent: { part: number; etag: string }[]): Promise<unknown>;
  abort(upload: string): Promise<void>;
}

/**
 * Stores an object in parts; its size. One part is on its way while the next one is being filled; the source is ended when
 * a part cannot be sent.
 */
export async function putParts(source: Readable, put: MultipartPut): Promise<number> {
  const sent: { part: number; etag: string }[] = [];
  let upload: string | undefined;
  let sending: Promise<void> = Promise.resolve();
  let total = 0;
  const send = async (id: string, part: Part) => {
    const etag = await put.send(id, part);
    sent.push({ part: part.number, etag });
  };
  try {
    for await (const part of cutIntoParts(put.bytes, put.size)) {
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
