/** Types of fields in Thrift's compact protocol. */
const [STOP, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT] = [0, 1, 2, 3, 7, 8, 9, 10, 12];
const MAX_DEPTH = 16;

/** Reads what Parquet says of itself (Thrift's compact protocol). Throws RangeError if it goes on after the bytes. */
export class ThriftReader {
  readonly #bytes: Buffer;
  at = 0;
  #depth = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  integer(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  text(): string {
    const length = this.#varint();
    if (this.at + length > this.#bytes.length) throw new RangeError('it is longer than the bytes');
    this.at += length;
    return this.#bytes.toString('utf8', this.at - length, this.at);
  }

  /** Reads fields by the reader of their number; the others are passed over. */
  struct(readers: Record<number, (type: number) => void>): void {
    if (++this.#depth > MAX_DEPTH) throw new Error('it is nested too deeply');
    for (let id = 0; ; ) {
      const head = this.#byte();
      const type = head & 15;
      if (type === STOP) break;
      id = head >> 4 === 0 ? this.integer() : id + (head >> 4);
      const read = readers[id];
      if (read) read(type);
      else this.skip(type);
    }
    this.#depth--;
  }

  list(readOne: (type: number) => void): void {
    const head = this.#byte();
    const count = head >> 4 === 15 ? this.#varint() : head >> 4;
    for (let i = 0; i < count; i++) readOne(head & 15);
  }

  #byte(): number {
    return this.#bytes.readUInt8(this.at++);
  }

  #varint(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 70; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Error('a number is too long');
  }

  skip(type: number): void {
    if (type === TRUE || type === FALSE) return;
    if (type === BYTE) this.at++;
    else if (type > BYTE && type < DOUBLE) this.#varint();
    else if (type === DOUBLE) this.at += 8;
    else if (type === BINARY) {
      const length = this.#varint();
      this.at += length;
    } else if (type === STRUCT) this.struct({});
    else if (type === LIST || type === SET)
      // In a list true and false have a byte each.
      this.list(of => this.skip(of === TRUE || of === FALSE ? BYTE : of));
    else throw new Error(`there is no type ${type}`);
    if (this.at > this.#bytes.length) throw new RangeError('it is longer than the bytes');
  }
}
