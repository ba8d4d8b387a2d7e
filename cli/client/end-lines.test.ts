import { expect, test } from 'vitest';
import { endLinesByLf } from './end-lines.ts';

test('lines end with LF, and quoted text stays as it is, wherever it is cut', async () => {
  const csv = Buffer.from('a,b\r\n"x\r\ny","a ""q"" \r"\r\n1,\r\n');
  for (let size = 1; size <= csv.length; size++) {
    const pieces = async function* () {
      for (let at = 0; at < csv.length; at += size) yield csv.subarray(at, at + size);
    };
    const found: Uint8Array[] = [];
    for await (const piece of endLinesByLf(pieces())) found.push(piece);
    expect(Buffer.concat(found).toString()).toBe('a,b\n"x\r\ny","a ""q"" \r"\n1,\n');
  }
});
