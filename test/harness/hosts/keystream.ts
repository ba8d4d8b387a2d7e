import { createCipheriv } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ALGORITHM = 'aes-128-ctr';
const BLOCK = 1 << 20;

/** Bytes like noise, of any length, which only a whole and ordered copy is equal to: AES in counter mode over zeros. */
export function* makeKeystream(key: string, length: number): Generator<Buffer> {
  const cipher = createCipheriv(ALGORITHM, key, Buffer.alloc(16));
  const zeros = Buffer.alloc(BLOCK);
  for (let left = length; left > 0; left -= BLOCK)
    yield cipher.update(zeros.subarray(0, Math.min(left, BLOCK)));
}

/** Writes a program into a folder of the host; the command line that prints what makeKeystream() makes. */
export function writeKeystreamProgram(folder: string): (key: string, length: number) => string {
  const path = join(folder, 'keystream.cjs');
  writeFileSync(
    path,
    `const [, , key, length] = process.argv;
const cipher = require('node:crypto').createCipheriv('${ALGORITHM}', key, Buffer.alloc(16));
const zeros = Buffer.alloc(${BLOCK});
for (let left = Number(length); left > 0; left -= ${BLOCK}) {
  const bytes = cipher.update(zeros.subarray(0, Math.min(left, ${BLOCK})));
  for (let at = 0; at < bytes.length; ) at += require('node:fs').writeSync(1, bytes, at);
}
`,
  );
  return (key, length) => `'${process.execPath}' '${path}' ${key} ${length}`;
}
