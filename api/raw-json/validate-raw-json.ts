import { isUtf8 } from 'node:buffer';
import { type JSONVisitor, visit } from 'jsonc-parser';

/** What a body must be: any JSON object, or the object that PUT of a parameter takes. */
export type BodyShape = 'object' | 'parameter';

export type RawJsonResult =
  /** `text` is the whole body, or the parameter's value less the white space around it: character for character as sent. */
  | { text: string; input: boolean }
  /** Types of errors as the body parser has them. */
  | { refused: 'body.not_utf8' | 'body.too_deep' }
  | { notJson: string }
  | { wrong: { field: string; problem: string }[] };

/** So many wrong members are named. */
const MAX_WRONG = 100;

/**
 * Checks a body as strictly as JSON.parse (RFC 8259) without building its value, which would lose what a number or a
 * string looked like, order and duplicate members, and could take twenty times the memory.
 */
export function validateRawJson(
  bytes: Uint8Array,
  shape: BodyShape,
  maxDepth = 100,
): RawJsonResult {
  if (!isUtf8(bytes)) return { refused: 'body.not_utf8' };
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  const reader = new Reader(text, shape, maxDepth);
  try {
    visit(text, reader, { disallowComments: true, allowTrailingComma: false });
    return reader.answer();
  } catch (thrown) {
    if (thrown instanceof Stop) return thrown.answer;
    throw thrown;
  }
}

/** Leaves visit(), which has no other way out. */
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
  /** The member of the outermost object that is being read. */
  #member = '';
  #start = 0;
  #value: string | undefined;
  #input = false;

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
    if (this.#shape === 'object') return { text: this.#text, input: false };
    if (!this.#seen.has('value')) this.#refuse('value', 'is required; it may be null');
    if (this.#wrong.length > 0) return { wrong: this.#wrong };
    return { text: this.#value ?? '', input: this.#input };
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

  /** A body may hold millions of names: no more of them are kept than are told. */
  #refuse(name: string, problem: string): void {
    this.#wrong.push({ field: name.slice(0, 100), problem });
    if (this.#wrong.length >= MAX_WRONG) throw new Stop({ wrong: this.#wrong });
  }
}
