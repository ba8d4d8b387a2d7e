import { crc32, deflateRawSync } from 'node:zlib';

export interface ZipMember {
  name: string | Buffer;
  content: string | Uint8Array;
  /** What the archive says instead of the truth. */
  lies?: { crc?: number; size?: number; method?: number; flags?: number; mode?: number };
  /** Where its bytes lie instead: those of the member with this index. */
  sharesBytesOf?: number;
}

/** A ZIP archive of deflated members. */
export function makeZip(members: ZipMember[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  const offsets: number[] = [];
  let offset = 0;
  for (const { name, content, lies = {}, sharesBytesOf } of members) {
    const bytes = Buffer.from(content as string);
    const deflated = deflateRawSync(bytes, { level: 9 });
    const path = Buffer.from(name as string);
    const {
      method = 8,
      flags = 0x800,
      size = bytes.length,
      crc = crc32(bytes),
      mode = 0o100644,
    } = lies;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(crc, 10);
    common.writeUInt32LE(deflated.length, 14);
    common.writeUInt32LE(size, 18);
    common.writeUInt16LE(path.length, 22);
    offsets.push(sharesBytesOf === undefined ? offset : (offsets[sharesBytesOf] as number));
    if (sharesBytesOf === undefined) {
      const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, path, deflated]);
      parts.push(local);
      offset += local.length;
    }
    const head = Buffer.alloc(20);
    head.writeUInt32LE((mode << 16) >>> 0, 10);
    head.writeUInt32LE(offsets.at(-1) as number, 14);
    directory.push(
      Buffer.concat([
        Buffer.from('PK\x01\x02\x14\x03', 'latin1'),
        common.subarray(0, 24),
        common.subarray(24, 26),
        head.subarray(2, 4),
        Buffer.alloc(4),
        head.subarray(10, 18),
        path,
      ]),
    );
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(members.length, 8);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, central, end]);
}
