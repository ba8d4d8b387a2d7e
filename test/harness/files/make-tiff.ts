/** How a TIFF says that its samples are stored. */
export type SampleFormat = 'unsigned' | 'signed' | 'float';

const FORMATS: readonly SampleFormat[] = ['unsigned', 'signed', 'float'];

/** An uncompressed grey TIFF (TIFF 6.0) of these samples, row by row; its header is written in little-endian order. */
export function makeTiff(
  { width, height }: { width: number; height: number },
  { format, bits }: { format: SampleFormat; bits: number },
  samples: Buffer,
): Buffer {
  // Tag and value; each value is one number of 32 bits.
  const entries = [
    [256, width],
    [257, height],
    [258, bits],
    [259, 1],
    // Photometric interpretation: 0 is black.
    [262, 1],
    [273, 0],
    [277, 1],
    [278, height],
    [279, samples.length],
    [339, FORMATS.indexOf(format) + 1],
  ] as const;
  const data = 8 + 2 + 12 * entries.length + 4;
  const head = Buffer.alloc(data);
  head.write('II*\0', 'latin1');
  head.writeUInt32LE(8, 4);
  head.writeUInt16LE(entries.length, 8);
  for (const [i, [tag, value]] of entries.entries()) {
    const at = 10 + 12 * i;
    head.writeUInt16LE(tag, at);
    // Type LONG.
    head.writeUInt16LE(4, at + 2);
    head.writeUInt32LE(1, at + 4);
    head.writeUInt32LE(tag === 273 ? data : value, at + 8);
  }
  return Buffer.concat([head, samples]);
}
