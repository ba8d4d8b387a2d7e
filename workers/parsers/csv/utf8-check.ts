import { isUtf8 } from 'node:buffer';

export const NOT_UTF8 = 'there are bytes that are not UTF-8';

/** Checks UTF-8 across chunks; keeps up to three bytes of an incomplete character for the next. */
export class Utf8Check {
  #rest = Buffer.alloc(0);

  get isComplete(): boolean {
    return this.#rest.length === 0;
  }

  /** The first invalid byte, by its position in this chunk (negative: in the one before). */
  findProblem(chunk: Buffer): { at: number; reason: string } | undefined {
    const nul = chunk.indexOf(0);
    const before = this.#rest.length;
    const bytes = before > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const whole = bytes.length - incompleteTail(bytes);
    if (!isUtf8(bytes.subarray(0, whole))) {
      const at = firstInvalid(bytes.subarray(0, whole)) - before;
      if (nul < 0 || at < nul) return { at, reason: NOT_UTF8 };
    }
    this.#rest = Buffer.from(bytes.subarray(whole));
    return nul < 0 ? undefined : { at: nul, reason: 'there is a NUL character' };
  }
}

/** The number of bytes at the end that may be an incomplete character. */
function incompleteTail(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? back : 0;
    }
  }
  return 0;
}

/** The position of the first invalid character, by binary search; an incomplete character at the end is valid. */
function firstInvalid(bytes: Buffer): number {
  const goodEnd = (length: number) => length - incompleteTail(bytes.subarray(0, length));
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isUtf8(bytes.subarray(0, goodEnd(middle)))) good = middle;
    else bad = middle;
  }
  return goodEnd(good);
}
