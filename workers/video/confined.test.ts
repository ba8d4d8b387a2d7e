import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findDescendants } from '../../servers/processes.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { drawFrames, readLocalFrames } from '../../test/harness/files/draw-frames.ts';
import { makePng } from '../../test/harness/files/make-png.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { confine, findIsolation } from '../sandbox/confine.ts';
import { giveToDecoder, storeScratch } from '../sandbox/scratch-dir.ts';
import { Decoder } from './decoder.ts';
import { encodeVideo } from './encode-video.ts';
import { findFfmpeg } from './find-ffmpeg.ts';
import type { ReadFrame } from './read-frames.ts';
import type { VideoLimits } from './video-limits.ts';

const temp = makeTempDir('confined');
afterAll(() => temp.remove());
let images: string[];
beforeAll(async () => {
  images = await drawFrames({ folder: join(temp.path, 'frames'), count: 3 });
});

/** A directory of the confined user, with a program in place of ffmpeg: what a hole in it would run. */
async function makeScratch(script: string) {
  const directory = join(temp.path, randomUUID());
  await mkdir(directory, { mode: 0o755 });
  const ffmpeg = join(directory, 'ffmpeg');
  writeFileSync(ffmpeg, `#!/bin/sh\ncd ${directory} || exit 9\n${script}\n`);
  chmodSync(ffmpeg, 0o755);
  await giveToDecoder(directory);
  return { directory, ffmpeg, outputPath: join(directory, 'video') };
}

const encode = (
  scratch: { ffmpeg: string; outputPath: string },
  limits: Partial<VideoLimits> = {},
) =>
  encodeVideo({
    frames: readLocalFrames(images),
    total: images.length,
    type: 'video/mp4',
    limits: { ...AMPLE, ...limits },
    ...scratch,
  });

describe('a picture that makes ffmpeg do what it wants', () => {
  let server: Server;
  let reached = 0;
  beforeAll(async () => {
    server = createServer(socket => {
      reached++;
      socket.destroy();
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => server.close());

  test('finds no environment, no other user’s files, and no network', async context => {
    process.env.WINDLASS_CANARY = 'canary';
    const secret = join(temp.path, 'secret');
    writeFileSync(secret, 'secret', { mode: 0o600 });
    const { port } = server.address() as AddressInfo;
    const connect = `require('node:net').connect(${port}, '127.0.0.1').on('error', e => console.log(e.code))`;
    const scratch = await makeScratch(
      `{ id -u; env; cat ${secret}; ${process.execPath} -e "${connect}"; } >found 2>&1; exit 1`,
    );
    try {
      await expect(encode(scratch)).rejects.toMatchObject({ code: 'video_failed' });
    } finally {
      delete process.env.WINDLASS_CANARY;
    }
    const found = readFileSync(join(scratch.directory, 'found'), 'utf8');
    expect(found).not.toContain('canary');
    const { user, hasNetwork } = await findIsolation();
    if (hasNetwork) return context.skip('needs a system that permits network namespaces');
    expect([reached, found]).toEqual([0, expect.stringMatching(/ENETUNREACH|ECONNREFUSED/)]);
    if (!user) return context.skip('needs root, to become another user');
    expect(found).toMatch(new RegExp(`^${user.uid}\n`));
    expect(found).not.toContain('secret\n');
    expect(found).toContain('Permission denied');
  });

  test.each([
    ['memory', { memory: 300 << 20 }, 'video_failed', 'LIMIT_VIDEO_BYTES'],
    ['wall time', { seconds: 2 }, 'time_limit', 'LIMIT_VIDEO_SECONDS'],
  ] as const)('ends at its limit of %s', async (what, limits, code, setting) => {
    const allocate = `${process.execPath} -e "const all = []; setInterval(() => all.push(Buffer.alloc(50e6, 1)), 20)"`;
    const scratch = await makeScratch(`exec ${what === 'memory' ? allocate : 'sleep 600'}`);
    await expect(encode(scratch, limits)).rejects.toMatchObject({
      code,
      hint: expect.stringContaining(setting),
    });
  });

  test.runIf(process.platform === 'linux')(
    'ends at its limit of wall time though it leaves a process behind',
    async () => {
      const sleeper = `sleep 62.${process.pid}`;
      const scratch = await makeScratch(`setsid ${sleeper} & exec sleep 600`);
      await expect(encode(scratch, { seconds: 1 })).rejects.toMatchObject({ code: 'time_limit' });
      // Whoever waited for it would find it ended.
      expect(spawnSync('pkill', ['-x', '-f', sleeper]).status).toBe(0);
    },
  );

  test('ends at its limit of the size of a file', async () => {
    const scratch = await makeScratch('exec head -c 100000000 /dev/zero >big');
    await expect(encode(scratch, { fileBytes: 1 << 20 })).rejects.toMatchObject({
      code: 'video_failed',
    });
    const sizes = (await readdir(scratch.directory)).map(
      name => readFileSync(join(scratch.directory, name)).length,
    );
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1 << 20);
  });

  test.each(['>&2', ''])('ends when it prints a line without end: %j', async where => {
    const scratch = await makeScratch(`exec head -c 100000000 /dev/zero ${where}`);
    await expect(encode(scratch)).rejects.toMatchObject({
      code: 'video_failed',
      message: expect.stringContaining('a line of more than 1048576 characters'),
    });
  });

  test('may use only so much processor time and addresses, open few files, and leaves no core', async () => {
    const scratch = await makeScratch(
      'for limit in t v n c; do ulimit -H -$limit; done >limits; exit 1',
    );
    await expect(encode(scratch, {})).rejects.toMatchObject({ code: 'video_failed' });
    const text = readFileSync(join(scratch.directory, 'limits'), 'utf8');
    const [seconds, kibibytes, files, core] = text.trim().split('\n').map(Number);
    expect(seconds).toBeLessThanOrEqual(AMPLE.seconds * availableParallelism());
    // With what is reserved and never used.
    expect(kibibytes).toBeLessThanOrEqual((AMPLE.memory + 6 * 2 ** 30) / 1_024);
    expect(files).toBeLessThanOrEqual(256);
    expect(core).toBe(0);
  });

  test('gets no file of the worker by leaving a link to it', async () => {
    const { directory } = await makeScratch('exit 1');
    const secret = join(directory, 'secret');
    writeFileSync(secret, 'secret', { mode: 0o600 });
    const link = join(directory, 'video');
    symlinkSync(secret, link);
    const store = new FileStore(join(directory, 'store'));
    const { signal } = new AbortController();
    await expect(storeScratch(store, 'a', { path: link, signal })).rejects.toThrow();
    expect(await store.stat('a')).toBeUndefined();
  });
});

test('a confined program ends at its limit of processor time, however long it may take', async () => {
  const limits = { ...AMPLE, processorSeconds: 1 };
  const loop = ['/bin/sh', '-c', 'while :; do :; done'];
  const [program, ...args] = confine(loop, limits, { isolation: await findIsolation() });
  const { signal } = spawnSync(program, args, { cwd: '/', timeout: 60_000 });
  // SIGTERM would be the timeout's.
  expect(signal).toMatch(/^SIG(KILL|XCPU)$/);
});

// Runners send these to all processes of a worker, what frees memory to one.
test.each([
  ['SIGTERM', 'with its worker'],
  ['SIGINT', 'with its worker'],
  ['SIGTERM', 'alone'],
] as const)(
  'a video whose ffmpeg %s ends %s ends as its worker does, or fails',
  async (signal, how) => {
    const { outputPath } = await makeScratch('');
    const stop = new AbortController();
    const reason = new Error('the worker stops');
    async function* endless() {
      const bytes = readFileSync(images[0] ?? '');
      for (let index = 0; ; index++) {
        // More than pipes hold: ffmpeg has begun.
        if (index === 2_000) {
          await signalFfmpeg(signal);
          if (how !== 'alone') setTimeout(() => stop.abort(reason), 200);
        }
        yield { index, path: `${index}`, size: bytes.length, bytes };
      }
    }
    const options = { type: 'video/mp4', limits: AMPLE, outputPath, signal: stop.signal } as const;
    const made = encodeVideo({ frames: endless(), total: 1e9, ...options });
    if (how === 'alone') await expect(made).rejects.toMatchObject({ code: 'video_failed' });
    else await expect(made).rejects.toBe(reason);
  },
);

const signalFfmpeg = (signal: NodeJS.Signals) =>
  waitFor(
    () => {
      const found = findDescendants([process.pid]).find(({ command }) =>
        /^\S*ffmpeg /.test(command),
      );
      return found && process.kill(found.pid, signal);
    },
    { what: 'ffmpeg' },
  );

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  'a decoder goes on after %s, which no frame is to blame for',
  async signal => {
    const decoder = new Decoder();
    try {
      const frame = readFileSync(images[0] ?? '');
      expect(await decoder.decode(frame, 'raw')).toMatchObject({ width: 64 });
      const title = 'windlass-child-decode';
      const child = findDescendants([process.pid]).find(({ command }) => command.startsWith(title));
      if (!child) throw new Error(`there is no ${title}`);
      process.kill(child.pid, signal);
      for (let n = 0; n < 20; n++)
        expect(await decoder.decode(frame, 'raw')).toMatchObject({ width: 64 });
      expect(findDescendants([process.pid]).map(({ pid }) => pid)).toContain(child.pid);
    } finally {
      decoder.close();
    }
  },
);

test('a real video is made within the limits, and too large a one is refused', async () => {
  const { directory, outputPath } = await makeScratch('');
  const ffmpeg = await findFfmpeg();
  expect((await encode({ ffmpeg, outputPath })).frames).toBe(images.length);
  const small = { fileBytes: 512 };
  await expect(encode({ ffmpeg, outputPath }, small)).rejects.toMatchObject({
    code: 'video_failed',
    message: expect.stringContaining('LIMIT_OUTPUT_BYTES'),
  });
  expect(await readdir(directory)).not.toContain('video');
});

test('a picture that unpacks to gigabytes is a problem of that picture alone', async () => {
  const decoder = new Decoder();
  try {
    const bomb = await decoder.decode(
      makePng(60_000, 60_000, deflateSync(Buffer.alloc(10_000_000))),
      'raw',
    );
    expect(bomb).toEqual({ problem: expect.any(String) });
    const [first = ''] = images;
    expect(await decoder.decode(readFileSync(first), 'raw')).toMatchObject({ width: 64 });
  } finally {
    decoder.close();
  }
});

test('frames of 8192×8192 stay under 2 GiB, in ffmpeg and decoder together', async () => {
  const size = { width: 8192, height: 8192 };
  const create = {
    ...size,
    channels: 4,
    background: { r: 200, g: 10, b: 10, alpha: 0.5 },
  } as const;
  const transparent = sharp({ create });
  const plain = sharp(await transparent.clone().removeAlpha().raw().toBuffer(), {
    raw: { ...size, channels: 3 },
  });
  const bitmap = Buffer.alloc(54 + 3 * size.width * size.height, 0x55);
  bitmap.write('BM', 'latin1');
  bitmap.fill(0, 2, 54);
  // BITMAPFILEHEADER says where the pixels are; BITMAPINFOHEADER its own length, both sides, planes and bits a pixel.
  bitmap.writeUInt32LE(bitmap.length, 2);
  bitmap.writeUInt32LE(54, 10);
  bitmap.writeUInt32LE(40, 14);
  bitmap.writeInt32LE(size.width, 18);
  bitmap.writeInt32LE(size.height, 22);
  bitmap.writeUInt16LE(1, 26);
  bitmap.writeUInt16LE(24, 28);
  for (const [frame, memory] of [
    [await plain.clone().png({ compressionLevel: 1 }).toBuffer(), 2 * 2 ** 30],
    [bitmap, 2 * 2 ** 30],
    // The decoder has the rest.
    [await transparent.clone().png({ compressionLevel: 1 }).toBuffer(), 2 * 2 ** 30 - 15 * 2 ** 26],
    [await plain.clone().webp({ effort: 0 }).toBuffer(), 2 * 2 ** 30 - 15 * 2 ** 26],
  ] as const) {
    const { outputPath } = await makeScratch('');
    const frames = repeat(frame, 2);
    const limits = { ...AMPLE, memory };
    const made = await encodeVideo({ frames, total: 2, type: 'video/mp4', limits, outputPath });
    expect(made).toMatchObject({ frames: 2, ...size });
  }
});

async function* repeat(bytes: Buffer, times: number): AsyncGenerator<ReadFrame> {
  for (let index = 0; index < times; index++)
    yield { index, path: `${index}`, size: bytes.length, bytes };
}
