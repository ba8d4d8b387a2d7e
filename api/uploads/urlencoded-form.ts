import { PassThrough, Writable } from 'node:stream';
import { waitForDrain } from '../../shared/process/wait-for-drain.ts';
import { invalidInput } from '../http/validate.ts';

interface Limits {
  /** Bytes of a name, as it is encoded. */
  fieldNameSize: number;
  /** Bytes of a value other than the file's. */
  fieldSize: number;
}

/** A byte may be written as three, and a value's last bytes are read with the next ones. */
const ENCODED = 3;

/**
 * Reads application/x-www-form-urlencoded with Busboy's events: `field` (name, value, nameTruncated, valueTruncated),
 * and `file` (name, stream) for the field `file`, whose base64 is decoded. It holds no more than one piece of a file.
 * Fails with `invalid_input`.
 */
export class UrlencodedForm extends Writable {
  readonly #limits: Limits;
  /** What was read of a name, or of a value that is no file's. */
  #text = '';
  #name: string | undefined;
  #file: { stream: PassThrough; decoder: Base64Decoder } | undefined;

  constructor(limits: Limits) {
    super({ decodeStrings: true });
    this.#limits = limits;
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#read(bytes.toString('latin1')).then(() => done(), done);
  }

  override _final(done: (error?: Error) => void): void {
    this.#endField().then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (error) this.#file?.stream.destroy(error);
    done(error);
  }

  async #read(text: string): Promise<void> {
    let from = 0;
    while (from < text.length) {
      if (this.#name === undefined) from = this.#readName(text, from);
      else {
        const end = text.indexOf('&', from);
        await this.#readValue(text.slice(from, end < 0 ? undefined : end));
        if (end < 0) return;
        await this.#endField();
        from = end + 1;
      }
    }
  }

  /** Where the value begins, or the next field. */
  #readName(text: string, from: number): number {
    const rest = text.slice(from);
    const at = rest.search(/[=&]/);
    this.#text += at < 0 ? rest : rest.slice(0, at);
    if (this.#text.length > this.#limits.fieldNameSize)
      throw invalidInput([{ field: 'body', problem: 'has too long a name' }], HINT);
    if (at < 0) return text.length;
    // An empty field, such as one after the last `&`, is none.
    if (rest[at] === '=' || this.#text !== '') this.#beginValue();
    // A name without a value ends at its `&`, which #read() finds.
    return from + at + (rest[at] === '=' || this.#name === undefined ? 1 : 0);
  }

  #beginValue(): void {
    this.#name = decode(this.#text, 'body');
    this.#text = '';
    if (this.#name !== 'file') return;
    this.#file = { stream: new PassThrough(), decoder: new Base64Decoder() };
    this.emit('file', 'file', this.#file.stream);
  }

  async #readValue(text: string): Promise<void> {
    if (this.#file) return this.#send(this.#file.decoder.decode(text));
    const room = ENCODED * this.#limits.fieldSize + 1 - this.#text.length;
    this.#text += text.slice(0, Math.max(0, room));
  }

  async #send(bytes: Buffer): Promise<void> {
    const stream = this.#file?.stream;
    // A file that was refused is read to its end, and dropped.
    if (!stream || stream.destroyed || bytes.length === 0) return;
    if (!stream.write(bytes)) await waitForDrain(stream);
  }

  async #endField(): Promise<void> {
    if (this.#name === undefined && this.#text !== '') this.#beginValue();
    if (this.#name === undefined) return;
    if (this.#file) {
      this.#file.decoder.end();
      this.#file.stream.end();
      this.#file = undefined;
    } else {
      const { fieldSize } = this.#limits;
      const isCut = this.#text.length > ENCODED * fieldSize;
      const value = isCut ? '' : decode(this.#text, this.#name);
      this.emit('field', this.#name, value, false, isCut || Buffer.byteLength(value) > fieldSize);
    }
    this.#name = undefined;
    this.#text = '';
  }
}

const HINT = 'Send a form as browsers do, with the file in base64, or the bytes as they are.';
const NOT_BASE64 = () => invalidInput([{ field: 'file', problem: 'is not base64' }], HINT);

/** Decodes base64 that is percent-encoded, piece by piece. */
class Base64Decoder {
  /** An escape that was cut off. */
  #escape = '';
  /** Characters that are no whole group of four. */
  #left = '';
  #isPadded = false;

  decode(text: string): Buffer {
    const whole = this.#escape + text;
    this.#escape = /%[\da-f]?$/i.exec(whole)?.[0] ?? '';
    const encoded = whole.slice(0, whole.length - this.#escape.length);
    // An unescaped plus means a space, which base64 does not have: a plus was meant.
    const characters = this.#left + unescapePercent(encoded);
    const size = characters.length - (characters.length % 4);
    const groups = characters.slice(0, size);
    this.#left = characters.slice(size);
    if (groups === '') return Buffer.alloc(0);
    if (this.#isPadded || !/^[A-Za-z\d+/]+={0,2}$/.test(groups)) throw NOT_BASE64();
    this.#isPadded = groups.endsWith('=');
    return Buffer.from(groups, 'base64');
  }

  /** Throws where the text ended within a group. */
  end(): void {
    if (this.#escape !== '' || this.#left !== '') throw NOT_BASE64();
  }
}

function unescapePercent(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%([\da-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function decode(text: string, field: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidInput([{ field, problem: 'is not UTF-8 with escapes that can be read' }], HINT);
  }
}
