/** The data types of RFC 4251, 5. Throws RangeError at the end of the bytes. */
export class WireReader {
  readonly #bytes: Buffer;
  position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.position === this.#bytes.length;
  }

  uint32(): number {
    const value = this.#bytes.readUInt32BE(this.position);
    this.position += 4;
    return value;
  }

  uint64(): bigint {
    const value = this.#bytes.readBigUInt64BE(this.position);
    this.position += 8;
    return value;
  }

  string(): Buffer {
    const length = this.uint32();
    const start = this.position;
    if (start + length > this.#bytes.length) throw new RangeError('a string is cut off');
    this.position = start + length;
    return this.#bytes.subarray(start, this.position);
  }

  text(): string {
    return this.string().toString('utf8');
  }

  /** RFC 4251, 5: names separated by commas. */
  names(): string[] {
    return this.text().split(',');
  }
}

export function wireUint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A string of RFC 4251, 5. */
export function wireString(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([wireUint32(bytes.length), bytes]);
}

/** A number that is not negative: without needless zeros in front, and with one before a high bit. */
export function wireNumber(number: Buffer): Buffer {
  const start = number.findIndex(byte => byte !== 0);
  const bytes = number.subarray(start < 0 ? number.length : start);
  return wireString((bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}
