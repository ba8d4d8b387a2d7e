import { spawnSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { readFile } from '../../workers/parsers/read-file.ts';
import { parseTable } from '../harness/clients/parsed-table.ts';
import { parseConfined } from '../harness/files/hostile-files.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

const directory = makeTempDir('compressed');
afterAll(() => directory.remove());

/** More than one block of zstd. */
const ROWS = 20_000;
const CSV = `n,t\n${Array.from({ length: ROWS }, (_, i) => `${i},row ${i * 7919}\n`).join('')}`;

async function read(content: Uint8Array, expanded = 1 << 30) {
  return parseTable(directory.path, content, async files => {
    const request = { kind: 'file', parser: 'csv', parameters: {}, expanded, ...files } as const;
    const [made] = await readFile(request, () => {});
    return { rows: 0, ...made };
  });
}

/** Compresses by the program of zstd's authors. */
function zstd(content: string | Uint8Array, ...options: string[]): Buffer {
  const { stdout, status } = spawnSync('zstd', ['--stdout', ...options], {
    input: content,
    maxBuffer: 1 << 30,
  });
  expect(status).toBe(0);
  return stdout;
}
const canZstd = spawnSync('zstd', ['--version']).status === 0;

/** Changes a bit; a negative place is counted from the end. */
function flip(bytes: Buffer, at: number): void {
  const place = (at + bytes.length) % bytes.length;
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
}

const expectWhole = async (content: Uint8Array) => {
  const { rows, json } = await read(content);
  expect([rows, json[0]?.at(-1), json[1]?.at(-1)]).toEqual([
    ROWS,
    String(ROWS - 1),
    `"row ${(ROWS - 1) * 7919}"`,
  ]);
};

test('gzip is read through, of one member and of several', async () => {
  await expectWhole(gzipSync(CSV));
  const half = CSV.length / 2;
  await expectWhole(Buffer.concat([gzipSync(CSV.slice(0, half)), gzipSync(CSV.slice(half))]));
});

test('gzip that is cut or changed is an error', async () => {
  const whole = gzipSync(CSV);
  await expect(read(whole.subarray(0, -9))).rejects.toThrow('the gzip file is damaged');
  for (const at of [-8, -3, 1_000]) {
    const changed = Buffer.from(whole);
    flip(changed, at);
    await expect(read(changed)).rejects.toThrow('the gzip file is damaged');
  }
});

test('zeros after gzip fill up a block, and nothing else follows it', async () => {
  for (const zeros of [1, 512, 200_000])
    await expectWhole(Buffer.concat([gzipSync(CSV), Buffer.alloc(zeros)]));
  for (const rest of ['\0more', 'more', `${'\0'.repeat(100_000)}more`])
    await expect(read(Buffer.concat([gzipSync(CSV), Buffer.from(rest)]))).rejects.toThrow(
      'the gzip file is damaged',
    );
});

test('a file expands to so many bytes, and to a thousand times its own', async () => {
  await expect(read(gzipSync(CSV), 100_000)).rejects.toThrow('expands to more than 100000 bytes');
  const bomb = gzipSync(Buffer.alloc(50 << 20, 10), { level: 9 });
  await expect(read(bomb)).rejects.toThrow('more than 1,000 times its size');
});

test.skipIf(!canZstd)(
  'zstd is read through: any level, frames, skippable frames (needs zstd)',
  async () => {
    for (const level of ['-1', '-19', '--long=27']) await expectWhole(zstd(CSV, level));
    const half = CSV.length / 2;
    const note = Buffer.from('502a4d1803000000616263', 'hex');
    await expectWhole(
      Buffer.concat([zstd(CSV.slice(0, half)), note, zstd(CSV.slice(half), '--no-check')]),
    );
  },
);

test.skipIf(!canZstd)('the smallest frames of zstd are read through (needs zstd)', async () => {
  for (const check of ['--check', '--no-check']) {
    const frames = ['n\n', '1\n', '', '2\n'].map(text => zstd(text, check));
    const { rows, json } = await read(Buffer.concat(frames));
    expect([rows, json[0]]).toEqual([2, ['1', '2']]);
  }
});

test.skipIf(!canZstd)('zstd may begin with a frame of no data (needs zstd)', async () => {
  const note = Buffer.from('502a4d180400000003000000', 'hex');
  await expectWhole(Buffer.concat([note, zstd(CSV)]));
});

test('a frame of zstd has as many bytes as it says', async () => {
  // One block that is not compressed: "n\n1\n2\n".
  const frame = (size: string) => Buffer.from(`28b52ffd20${size}3100006e0a310a320a`, 'hex');
  expect(await read(frame('06'))).toMatchObject({ rows: 2 });
  for (const size of ['05', '07'])
    await expect(read(frame(size))).rejects.toThrow('the zstd file is damaged');
});

test.skipIf(!canZstd)('zstd is read in the confined process of a worker (needs zstd)', async () => {
  const made = await parseConfined(directory.path, { parser: 'csv', content: zstd(CSV) });
  expect(made).toMatchObject([{ rows: ROWS }]);
});

test.skipIf(!canZstd)(
  'zstd that is cut, changed or too demanding is an error (needs zstd)',
  async () => {
    const whole = zstd(CSV);
    await expect(read(whole.subarray(0, -5))).rejects.toThrow('the zstd file is damaged');
    for (const at of [-1, 2_000, 10_000]) {
      const changed = Buffer.from(whole);
      flip(changed, at);
      await expect(read(changed)).rejects.toMatchObject({ name: 'TableError' });
    }
    await expect(read(Buffer.concat([whole, Buffer.from('more')]))).rejects.toThrow(
      'after its end',
    );
    // A frame that asks for 3.75 TB of memory.
    await expect(read(Buffer.from('28b52ffd00ff0100000a', 'hex'))).rejects.toThrow('of memory');
    const bomb = zstd(Buffer.alloc(50 << 20, 10));
    await expect(read(bomb)).rejects.toThrow('more than 1,000 times its size');
  },
);
