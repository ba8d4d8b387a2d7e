import { isUtf8 } from 'node:buffer';
import { type JSONVisitor, visit } from 'jsonc-parser';

/** The required form of a body: any JSON object, or the object that PUT of a parameter takes. */
export type BodyShape = 'object' | 'parameter';

export type RawJsonResult =
  /** `text` is the whole body, or the parameter's value without surrounding white space, exactly as sent; `input` where given. */
  | { text: string; input?: boolean }
  /** The type of error that body-parser would throw. */
  | { refused: 'body.not_utf8' | 'body.too_deep' }
  | { notJson: string }
  | { wrong: { field: string; problem: string }[] };

/** RFC 8259, 8.1: a parser may pass it over, and a service must not send it. */
const BYTE_ORDER_MARK = Buffer.from('\ufeff');
/** Limit on the wrong members that are listed. */
const MAX_WRONG = 100;

/**
 * Validates a body as strictly as JSON.parse (RFC 8259) without building its value, which would lose the notation of
 * numbers and strings, order and duplicate members, and could take twenty times the memory.
 */
export function validateRawJson(
  bytes: Uint8Array,
  shape: BodyShape,
  maxDepth = 100,
): RawJsonResult {
  if (!isUtf8(bytes)) return { refused: 'body.not_utf8' };
  const sent = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isMarked = sent.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const text = sent.toString('utf8', isMarked ? BYTE_ORDER_MARK.length : 0);
  const reader = new Reader(text, shape, maxDepth);
  try {
    visit(text, reader, { disallowComments: true, allowTrailingComma: false });
    return reader.answer();
  } catch (thrown) {
    if (thrown instanceof Stop) return thrown.answer;
    throw thrown;
  }
}

/** Thrown to stop visit(), which has no other way. */
class Stop extends Error {
  readonly answer: RawJsonResult;
  constructor(answer: RawJsonResult) {
    super();
    this.answer = answer;
  }
}

class Reader implements JSONVisitor {
  readonly #text: string;
  readonly #shape: BodyShape;
  readonly #maxDepth: number;
  readonly #wrong: { field: string; problem: string }[] = [];
  readonly #seen = new Set<string>();
  #depth = 0;
  #isObject = false;
  /** The current member of the outermost object. */
  #member = '';
  #start = 0;
  #value: string | undefined;
  #input: boolean | undefined;

  constructor(text: string, shape: BodyShape, maxDepth: number) {
    this.#text = text;
    this.#shape = shape;
    this.#maxDepth = maxDepth;
  }

  onObjectBegin = (offset: number) => {
    if (this.#depth === 0) this.#isObject = true;
    this.#open(offset);
  };
  onArrayBegin = (offset: number) => this.#open(offset);
  onObjectEnd = (offset: number) => this.#close(offset);
  onArrayEnd = (offset: number) => this.#close(offset);

  onObjectProperty = (name: string) => {
    if (this.#depth !== 1 || this.#shape === 'object') return;
    this.#member = name;
    if (this.#seen.has(name)) this.#refuse(name, 'is given twice');
    else if (name !== 'value' && name !== 'input') this.#refuse(name, 'is not a known field');
    this.#seen.add(name);
  };

  onLiteralValue = (value: unknown, offset: number, length: number) => {
    if (this.#depth !== 1 || !this.#isObject) return;
    if (this.#member === 'input') {
      if (typeof value === 'boolean') this.#input = value;
      else this.#refuse('input', 'must be true or false');
    }
    if (this.#member === 'value') this.#value = this.#text.slice(offset, offset + length);
  };

  onError = (_code: number, offset: number, _length: number, line: number, column: number) => {
    const where = `line ${line + 1}, character ${column + 1}`;
    throw new Stop({ notJson: offset >= this.#text.length ? 'it ends too early' : where });
  };

  answer(): RawJsonResult {
    if (!this.#isObject) return { wrong: [{ field: 'body', problem: 'must be a JSON object' }] };
    if (this.#shape === 'object') return { text: this.#text };
    if (!this.#seen.has('value')) this.#refuse('value', 'is required; it may be null');
    if (this.#wrong.length > 0) return { wrong: this.#wrong };
    const text = this.#value ?? '';
    return this.#input === undefined ? { text } : { text, input: this.#input };
  }

  #open(offset: number): void {
    if (this.#depth === 1) this.#start = offset;
    if (++this.#depth > this.#maxDepth) throw new Stop({ refused: 'body.too_deep' });
  }

  #close(offset: number): void {
    if (--this.#depth !== 1) return;
    if (this.#member === 'value') this.#value = this.#text.slice(this.#start, offset + 1);
    if (this.#member === 'input') this.#refuse('input', 'must be true or false');
  }

  /** A body may have millions of wrong members: stops at the limit. */
  #refuse(name: string, problem: string): void {
    this.#wrong.push({ field: name.slice(0, 100), problem });
    if (this.#wrong.length >= MAX_WRONG) throw new Stop({ wrong: this.#wrong });
  }
}
