/** Limit of bytes of all arguments of one command; every system takes 128 KiB. */
const BATCH_BYTES = 64_000;

/** Quoted words of sh, in order, in batches short enough for one command. */
export function batchWords(quoted: Iterable<string>): string[] {
  const batches: string[] = [];
  let words: string[] = [];
  let bytes = 0;
  for (const word of quoted) {
    const length = Buffer.byteLength(word) + 1;
    if (words.length > 0 && bytes + length > BATCH_BYTES) {
      batches.push(words.join(' '));
      words = [];
      bytes = 0;
    }
    words.push(word);
    bytes += length;
  }
  return [...batches, words.join(' ')];
}
