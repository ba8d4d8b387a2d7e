import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ByteReader } from './byte-reader.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const MIB = 1 << 20;

test('what comes byte by byte takes hardly more memory than its bytes', async () => {
  const held = () => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  let grown = 0;
  const pieces = async function* () {
    const before = held();
    for (let i = 0; i < 200_000; i++) {
      if (i % 1_000 === 0) await setImmediate();
      yield Buffer.from('x');
    }
    grown = held() - before;
    yield Buffer.from('\nend');
  };
  const reader = new ByteReader(Readable.from(pieces(), { objectMode: false, highWaterMark: 1 }));
  const { bytes, isWhole } = await reader.readUntil(Buffer.from('\n'), MIB);
  expect([bytes.equals(Buffer.alloc(200_000, 'x')), isWhole]).toEqual([true, true]);
  expect(grown).toBeLessThan(8 * MIB);
  expect((await reader.readExactly(3)).toString()).toBe('end');
});
