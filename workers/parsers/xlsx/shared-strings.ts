import { readWholeXml, unescapeText } from './read-xml.ts';

const CHUNK_BYTES = 1 << 20;

/** The texts of a workbook, outside of V8's heap: there may be millions. */
export class SharedStrings {
  readonly #chunks: Buffer[] = [];
  /** Bytes of the last chunk that are used. */
  #used = 0;
  /** The place of each text: chunk, begin, end. */
  #places = new Uint32Array(3 * 1_024);
  #count = 0;
  /** UTF-8 has no half of a surrogate pair: whoever uses such a text refuses it. */
  readonly #halves = new Map<number, string>();

  add(text: string): void {
    if (/\p{Surrogate}/u.test(text)) this.#halves.set(this.#count, text);
    const length = Buffer.byteLength(text);
    const last = this.#chunks.at(-1);
    if (!last || this.#used + length > last.length) {
      this.#chunks.push(Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, length)));
      this.#used = 0;
    }
    const at = this.#count * 3;
    if (at === this.#places.length) {
      const larger = new Uint32Array(this.#places.length * 2);
      larger.set(this.#places);
      this.#places = larger;
    }
    (this.#chunks.at(-1) as Buffer).write(text, this.#used);
    this.#places.set([this.#chunks.length - 1, this.#used, this.#used + length], at);
    this.#used += length;
    this.#count++;
  }

  get(index: number): string | undefined {
    if (!Number.isInteger(index) || index < 0 || index >= this.#count) return undefined;
    const half = this.#halves.get(index);
    if (half !== undefined) return half;
    const [chunk = 0, from, to] = this.#places.subarray(index * 3, index * 3 + 3);
    return this.#chunks[chunk]?.toString('utf8', from, to);
  }
}

/** Reads the texts: of each its runs, without the marks of pronunciation. */
export async function readSharedStrings(bytes: AsyncIterable<Buffer>): Promise<SharedStrings> {
  const strings = new SharedStrings();
  let text = '';
  let isText = false;
  let isPhonetic = false;
  await readWholeXml(bytes, {
    part: 'the list of texts',
    onOpen: ({ name }) => {
      if (name === 'si') text = '';
      else if (name === 'rPh') isPhonetic = true;
      else if (name === 't') isText = !isPhonetic;
    },
    onText: piece => {
      if (isText) text += piece;
    },
    onClose: name => {
      if (name === 'si') strings.add(unescapeText(text));
      else if (name === 'rPh') isPhonetic = false;
      else if (name === 't') isText = false;
    },
  });
  return strings;
}
