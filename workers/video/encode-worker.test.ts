import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../shared/package-root.ts';
import { isProcessAlive, makeTempDir } from '../../test/harness/temp-dir.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { drawFrame, drawFrames } from './draw-frames.ts';
import { type EncodeVideoOptions, encodeVideo } from './encode-worker.ts';
import { findBundledFfmpeg } from './find-ffmpeg.ts';
import { countFrames, probeVideo } from './probe.ts';
import { type Frame, type FrameFailure, readFrames } from './read-frames.ts';
import { TRANSFER_COMMAND, transferScript } from './transfer.ts';

const temp = makeTempDir('encode-worker');
afterAll(() => temp.remove());
const at = (name: string) => join(temp.path, name);

async function* readLocally(paths: readonly string[]): AsyncGenerator<Frame | FrameFailure> {
  for (const [index, path] of paths.entries()) {
    const bytes = readFileSync(path);
    yield { index, path, size: bytes.length, bytes };
  }
}

let video = 0;
async function encode(paths: string[], options: Partial<EncodeVideoOptions> = {}) {
  const outputPath = at(`video-${video++}`);
  const made = await encodeVideo({
    frames: readLocally(paths),
    total: paths.length,
    type: 'video/mp4',
    outputPath,
    ...options,
  });
  return { ...made, outputPath };
}

/** The processes whose command line names this file. */
function findProcesses(path: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path);
      } catch {
        return false;
      }
    })
    .map(Number);
}

function listChildren(parent: number): number[] {
  const lists = readdirSync(`/proc/${parent}/task`).map(thread =>
    readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8'),
  );
  return lists
    .join(' ')
    .split(' ')
    .filter(pid => pid)
    .map(Number);
}

/** The names of the boxes of an MP4 file, in order (ISO/IEC 14496-12). */
function listBoxes(path: string): string[] {
  const bytes = readFileSync(path);
  const names: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += bytes.readUInt32BE(offset)) {
    names.push(bytes.toString('latin1', offset + 4, offset + 8));
  }
  return names;
}

describe('encodeVideo', () => {
  it.each([
    { type: 'video/mp4', kind: 'png' },
    { type: 'video/mp4', kind: 'jpeg' },
    { type: 'video/webm', kind: 'png' },
    { type: 'video/webm', kind: 'jpeg' },
    { type: 'video/mp4', kind: 'tiff' },
    { type: 'video/webm', kind: 'webp' },
  ] as const)('makes $type of $kind frames, padded to even sides', async ({ type, kind }) => {
    const paths = await drawFrames({ folder: at(kind), count: 7, width: 63, height: 41, kind });
    const made = await encode(paths, { type, fps: 29.97 });
    expect(made).toMatchObject({ frames: 7, width: 64, height: 42 });
    expect(await probeVideo(made.outputPath)).toEqual({ frames: 7, width: 64, height: 42 });
    const bytes = readFileSync(made.outputPath);
    expect(made.bytes).toBe(bytes.length);
    const signature =
      type === 'video/mp4' ? bytes.toString('latin1', 4, 8) : bytes.toString('hex', 0, 4);
    expect(signature).toBe(type === 'video/mp4' ? 'ftyp' : '1a45dfa3');
  });

  it('keeps one picture a frame at every rate', async () => {
    const paths = await drawFrames({ folder: at('rates'), count: 12 });
    for (const type of ['video/mp4', 'video/webm'] as const) {
      for (const fps of [1, 7.3, 59.94, 120]) {
        expect(await countFrames((await encode(paths, { type, fps })).outputPath), `${fps}`).toBe(
          12,
        );
      }
    }
  });

  it('puts the index before the pictures', async () => {
    const { outputPath } = await encode(await drawFrames({ folder: at('index'), count: 3 }));
    const boxes = listBoxes(outputPath);
    expect(boxes.indexOf('moov')).toBeGreaterThan(0);
    expect(boxes.indexOf('mdat')).toBeGreaterThan(boxes.indexOf('moov'));
  });

  it('scales to a width, and spends bytes by quality', async () => {
    const paths = await drawFrames({ folder: at('scaled'), count: 3, width: 200, height: 75 });
    expect(await encode(paths, { width: 100 })).toMatchObject({ width: 100, height: 38 });
    for (const type of ['video/mp4', 'video/webm'] as const) {
      const sizes = [];
      for (const quality of [0, 0.65, 1])
        sizes.push((await encode(paths, { type, quality })).bytes);
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
      expect(new Set(sizes).size).toBe(3);
    }
    const narrow = await drawFrames({ folder: at('narrow'), count: 1, width: 2, height: 100 });
    await expect(encode(narrow, { width: 7680 })).rejects.toMatchObject({ code: 'bad_frames' });
  });

  it('keeps colours and the last column, whatever the frames are', async () => {
    for (const kind of ['png', 'jpeg', 'tiff'] as const) {
      const [path = ''] = await drawFrames({ folder: at(`colours-${kind}`), count: 1 });
      const red = {
        create: { width: 63, height: 41, channels: 3, background: '#c81e1e' },
      } as const;
      writeFileSync(path, await sharp(red).toFormat(kind).toBuffer());
      const { outputPath } = await encode([path], { quality: 1 });
      const pixel = await readPixel(outputPath, { x: 62, y: 40 });
      for (const [i, value] of [0xc8, 0x1e, 0x1e].entries()) {
        expect(Math.abs((pixel[i] ?? 0) - value), `${kind} ${pixel}`).toBeLessThan(12);
      }
    }
  });

  it('decodes frames of another kind than the first', async () => {
    const paths = await drawFrames({ folder: at('mixed'), count: 6 });
    const kinds = ['png', 'jpeg', 'tiff', 'webp', 'gif', 'png'] as const;
    for (const [i, path] of paths.entries()) {
      writeFileSync(path, await drawFrame({ width: 64, height: 48, kind: kinds[i] ?? 'png' }));
    }
    for (const order of [paths, [...paths].reverse(), [...paths.slice(1)], paths.slice(2)]) {
      expect(await countFrames((await encode(order)).outputPath)).toBe(order.length);
    }
  });

  it('works with the ffmpeg that npm brings', async () => {
    const ffmpeg = await findBundledFfmpeg();
    expect(ffmpeg).toBeDefined();
    const paths = await drawFrames({ folder: at('bundled'), count: 5, width: 33 });
    for (const type of ['video/mp4', 'video/webm'] as const) {
      const { outputPath } = await encode(paths, { type, ffmpeg });
      expect(await probeVideo(outputPath)).toEqual({ frames: 5, width: 34, height: 48 });
    }
  });

  it('takes frames as they come over a channel', async () => {
    const images = await drawFrames({ folder: at('channel'), count: 30, kind: 'jpeg' });
    const host = spawn('/bin/sh', ['-c', TRANSFER_COMMAND], { stdio: ['pipe', 'pipe', 'inherit'] });
    host.stdin.end(transferScript({ images }));
    const made = await encode(images, {
      frames: readFrames(host.stdout, { images }),
      type: 'video/webm',
    });
    expect(await probeVideo(made.outputPath)).toEqual({ frames: 30, width: 64, height: 48 });
  });

  it('tells its progress without ever falling back', async () => {
    const paths = await drawFrames({ folder: at('progress'), count: 90, width: 640, height: 480 });
    const shares: number[] = [];
    const start = performance.now();
    await encode(paths, { onProgress: share => shares.push(share) });
    console.info(`90 frames of 640×480 in ${Math.round(performance.now() - start)} ms`);
    expect(shares.length).toBeGreaterThan(0);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.at(-1)).toBe(1);
  });
});

describe('what encodeVideo refuses', () => {
  let good: string[] = [];
  beforeAll(async () => {
    good = await drawFrames({ folder: at('good'), count: 3 });
  });

  it('lists all frames that cannot be used, by path', async () => {
    const other = at('other-size');
    writeFileSync(other, await drawFrame({ width: 80, height: 48, kind: 'tiff' }));
    const playlist = at('playlist.png');
    writeFileSync(playlist, `#EXTM3U\n#EXTINF:1,\nfile://${good[0]}\n`);
    const broken = at('broken.tiff');
    writeFileSync(
      broken,
      (await drawFrame({ width: 64, height: 48, kind: 'tiff' })).subarray(0, 300),
    );
    async function* frames(): AsyncGenerator<Frame | FrameFailure> {
      yield* readLocally([...good, other, playlist, broken]);
      yield { index: 6, path: '/gone', problem: 'is missing' };
    }
    const outputPath = at('refused');
    await expect(encode([], { frames: frames(), total: 7, outputPath })).rejects.toMatchObject({
      code: 'bad_frames',
      extra: {
        count: 4,
        frames: [
          { path: other, reason: 'is of another size: 80×48 pixels, the first is 64×48' },
          { path: playlist, reason: 'is not an image' },
          { path: broken, reason: expect.stringContaining('cannot be decoded') },
          { path: '/gone', reason: 'is missing' },
        ],
      },
    });
    expect(readdirSync(temp.path)).not.toContain('refused');
    await expect(encode([playlist])).rejects.toMatchObject({ code: 'bad_frames' });
    await expect(encode([])).rejects.toMatchObject({ code: 'bad_frames' });
  });

  it.each(['png', 'jpeg'] as const)('says what ffmpeg says of a broken %s', async kind => {
    const paths = await drawFrames({
      folder: at(`broken-${kind}`),
      count: 5,
      width: 300,
      height: 200,
      kind,
    });
    const path = paths[2] ?? '';
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length / 2));
    await expect(encode(paths)).rejects.toMatchObject({
      code: 'video_failed',
      extra: { returncode: 1, stderr: expect.stringMatching(/./) },
    });
  });

  it('does not call a video whole that lacks frames', async () => {
    await expect(encode(good, { total: 4 })).rejects.toMatchObject({
      code: 'video_failed',
      message: expect.stringContaining('3 pictures were made of 4 frames'),
    });
  });

  it('passes on what reading the frames throws, with ffmpeg gone', async () => {
    const outputPath = at('lost');
    async function* frames() {
      yield* readLocally(good);
      await waitFor(() => findProcesses(outputPath).length > 0, { what: 'ffmpeg to run' });
      throw new Error('the link was cut');
    }
    await expect(encode(good, { frames: frames(), outputPath })).rejects.toThrow(
      'the link was cut',
    );
    expect(findProcesses(outputPath)).toEqual([]);
  });

  it('leaves no ffmpeg when it is aborted', async () => {
    const abort = new AbortController();
    const outputPath = at('aborted');
    let ended = false;
    async function* frames() {
      try {
        for (;;) yield* readLocally(good);
      } finally {
        ended = true;
      }
    }
    const encoding = encode(good, {
      frames: frames(),
      outputPath,
      signal: abort.signal,
      total: 1e6,
    });
    encoding.catch(() => undefined);
    const [pid] = await waitFor(
      () => (findProcesses(outputPath).length > 0 ? findProcesses(outputPath) : undefined),
      {
        what: 'ffmpeg to run',
      },
    );
    expect(pid).toBeGreaterThan(0);
    abort.abort(new Error('not wanted any more'));
    await expect(encoding).rejects.toThrow('not wanted any more');
    expect(findProcesses(outputPath)).toEqual([]);
    await waitFor(() => ended, { what: 'the reading to stop' });
    expect(readdirSync(temp.path)).not.toContain('aborted');
  });

  it('leaves no ffmpeg and no decoder when the worker is killed', async () => {
    const outputPath = at('killed');
    const tiff = at('killed.tiff');
    writeFileSync(tiff, await drawFrame({ width: 64, height: 48, kind: 'tiff' }));
    const program = `
      import { readFileSync } from 'node:fs';
      const { encodeVideo } = await import(process.argv[1]);
      const bytes = readFileSync(process.argv[2]);
      async function* frames() { for (let index = 0; ; index++) yield { index, path: '/x', size: bytes.length, bytes }; }
      await encodeVideo({ frames: frames(), total: 1e6, type: 'video/mp4', outputPath: process.argv[3] });`;
    const compiled = new URL('dist/workers/video/encode-worker.js', packageRoot).href;
    const args = ['--input-type=module', '-e', program, compiled, tiff, outputPath];
    const worker = spawn(process.execPath, args, { stdio: 'inherit' });
    const children = () => findProcesses(outputPath).filter(pid => pid !== worker.pid);
    await waitFor(() => children().length > 0, { what: 'ffmpeg to run' });
    const left = listChildren(worker.pid ?? 0);
    expect(left.length).toBeGreaterThan(1);
    worker.kill('SIGKILL');
    await waitFor(() => !left.some(isProcessAlive), { what: 'the children to end' });
  });

  it('does not start when it is aborted before', async () => {
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(encode(good, { signal })).rejects.toThrow('too late');
  });

  it('says that ffmpeg could not be started', async () => {
    await expect(encode(good, { ffmpeg: '/no/such/ffmpeg' })).rejects.toMatchObject({
      code: 'video_failed',
      extra: { returncode: -1 },
    });
  });
});

/** One pixel of a video's first picture, as RGB. */
async function readPixel(path: string, { x, y }: { x: number; y: number }): Promise<number[]> {
  const output = [
    '-frames:v',
    '1',
    '-vf',
    'scale=in_color_matrix=bt709',
    '-pix_fmt',
    'rgb24',
    '-f',
    'rawvideo',
    '-',
  ];
  const raw = execFileSync('ffmpeg', ['-loglevel', 'error', '-i', path, ...output]);
  const { width } = await probeVideo(path);
  const offset = (y * width + x) * 3;
  return [...raw.subarray(offset, offset + 3)];
}
