/** The samples of an EXR's channels, row by row: linear light as 32-bit floats. */
export type ExrChannels = Record<string, readonly number[]>;

const attribute = (name: string, type: string, value: Buffer) => {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  return Buffer.concat([Buffer.from(`${name}\0${type}\0`), length, value]);
};
const integers = (...values: number[]) => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeInt32LE(value, 4 * i);
  return bytes;
};
const floats = (values: readonly number[]) => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeFloatLE(value, 4 * i);
  return bytes;
};

/** An uncompressed EXR picture of one part, by the OpenEXR file layout. */
export function makeExr(
  { width, height }: { width: number; height: number },
  channels: ExrChannels,
): Buffer {
  const names = Object.keys(channels).sort();
  const window = integers(0, 0, width - 1, height - 1);
  const header = Buffer.concat([
    Buffer.from('762f310102000000', 'hex'),
    attribute(
      'channels',
      'chlist',
      // A float (2), not only for perception, of every column and row.
      Buffer.concat([
        ...names.map(name => Buffer.concat([Buffer.from(`${name}\0`), integers(2, 0, 1, 1)])),
        Buffer.alloc(1),
      ]),
    ),
    attribute('compression', 'compression', Buffer.alloc(1)),
    attribute('dataWindow', 'box2i', window),
    attribute('displayWindow', 'box2i', window),
    attribute('lineOrder', 'lineOrder', Buffer.alloc(1)),
    attribute('pixelAspectRatio', 'float', floats([1])),
    attribute('screenWindowCenter', 'v2f', floats([0, 0])),
    attribute('screenWindowWidth', 'float', floats([1])),
    Buffer.alloc(1),
  ]);
  const lines = Array.from({ length: height }, (_, y) => {
    const row = floats(
      names.flatMap(name => channels[name]?.slice(y * width, (y + 1) * width) ?? []),
    );
    return Buffer.concat([integers(y, row.length), row]);
  });
  const table = Buffer.alloc(8 * height);
  let at = header.length + table.length;
  for (const [y, line] of lines.entries()) {
    table.writeBigUInt64LE(BigInt(at), 8 * y);
    at += line.length;
  }
  return Buffer.concat([header, table, ...lines]);
}
