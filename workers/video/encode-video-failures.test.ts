import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../shared/process/package-root.ts';
import { drawFrame, drawFrames, readLocalFrames } from '../../test/harness/files/draw-frames.ts';
import { isProcessAlive, makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { NEEDS_MOUNT } from '../../test/harness/hosts/small-disk.ts';
import { missingRoot } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { giveToDecoder } from '../sandbox/scratch-dir.ts';
import { type EncodeVideoOptions, encodeVideo } from './encode-video.ts';

const temp = makeTempDir('encode-failures');
beforeAll(() => giveToDecoder(temp.path));
afterAll(() => temp.remove());
const at = (name: string) => join(temp.path, name);

let video = 0;
async function encode(paths: string[], options: Partial<EncodeVideoOptions> = {}) {
  const outputPath = at(`video-${video++}`);
  return encodeVideo({
    frames: readLocalFrames(paths),
    total: paths.length,
    type: 'video/mp4',
    outputPath,
    limits: AMPLE,
    ...options,
  });
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

describe('failures of encodeVideo', () => {
  let good: string[] = [];
  beforeAll(async () => {
    good = await drawFrames({ folder: at('good'), count: 3 });
  });

  it('says that the disk is full, whose fault is no frame', async context => {
    const disk = at('disk');
    mkdirSync(disk);
    const mount = ['-t', 'tmpfs', '-o', 'size=64k,mode=777', 'tmpfs', disk];
    if (missingRoot() || spawnSync('mount', mount).status !== 0) return context.skip(NEEDS_MOUNT);
    try {
      writeFileSync(join(disk, 'filler'), Buffer.alloc(64 << 10));
      const outputPath = join(disk, 'video');
      await expect(encode(good, { outputPath })).rejects.toMatchObject({
        code: 'insufficient_storage',
      });
    } finally {
      execFileSync('umount', ['--lazy', disk]);
    }
  });

  it('ends at the first frame that cannot be used, and leaves no video', async () => {
    const playlist = at('playlist.png');
    writeFileSync(playlist, `#EXTM3U\n#EXTINF:1,\nfile://${good[0]}\n`);
    const other = at('other-size');
    writeFileSync(other, await drawFrame({ width: 80, height: 48, kind: 'tiff' }));
    const broken = at('broken.tiff');
    writeFileSync(
      broken,
      (await drawFrame({ width: 64, height: 48, kind: 'tiff' })).subarray(0, 300),
    );
    for (const [path, reason] of [
      [playlist, 'is not an image'],
      [other, 'is of another size: 80×48 pixels, the first is 64×48'],
      [broken, 'cannot be decoded'],
    ] as const) {
      const outputPath = at('refused');
      await expect(encode([...good, path, ...good], { outputPath })).rejects.toMatchObject({
        code: 'bad_frames',
        extra: { count: 1, frames: [{ index: 3, path, reason: expect.stringContaining(reason) }] },
      });
      expect(readdirSync(temp.path)).not.toContain('refused');
    }
    await expect(encode([playlist])).rejects.toMatchObject({ code: 'bad_frames' });
    await expect(encode([])).rejects.toMatchObject({ code: 'bad_frames' });
  });

  it.each(['png', 'jpeg'] as const)('names a %s that is cut short', async kind => {
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
      code: 'bad_frames',
      extra: { frames: [{ index: 2, path, reason: expect.stringContaining('is cut short') }] },
    });
  });

  it('fails for a video that lacks frames', async () => {
    await expect(encode(good, { total: 4 })).rejects.toMatchObject({
      code: 'video_failed',
      message: expect.stringContaining('the video has 3 pictures for 4 frames'),
    });
  });

  it('throws the error of reading the frames after ffmpeg has exited', async () => {
    const outputPath = at('lost');
    async function* frames() {
      yield* readLocalFrames(good);
      await waitFor(() => findProcesses(outputPath).length > 0, { what: 'ffmpeg to run' });
      throw new Error('the link was cut');
    }
    await expect(encode(good, { frames: frames(), outputPath })).rejects.toThrow(
      'the link was cut',
    );
    expect(findProcesses(outputPath)).toEqual([]);
  });

  it('leaves no ffmpeg when aborted', async () => {
    const abort = new AbortController();
    const outputPath = at('aborted');
    let ended = false;
    async function* frames() {
      try {
        for (;;) yield* readLocalFrames(good);
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
      await encodeVideo({ frames: frames(), total: 1e6, type: 'video/mp4', outputPath: process.argv[3], limits: ${JSON.stringify(AMPLE)} });`;
    const compiled = new URL('dist/workers/video/encode-video.js', packageRoot).href;
    const args = ['--input-type=module', '-e', program, compiled, tiff, outputPath];
    const worker = spawn(process.execPath, args, { stdio: 'inherit' });
    const children = () => findProcesses(outputPath).filter(pid => pid !== worker.pid);
    await waitFor(() => children().length > 0, { what: 'ffmpeg to run' });
    // /proc may miss one of them while another starts.
    const left = await waitFor(
      () => {
        const found = listChildren(worker.pid ?? 0);
        return found.length > 1 ? found : undefined;
      },
      { what: 'ffmpeg and the decoder to run' },
    );
    worker.kill('SIGKILL');
    await waitFor(() => !left.some(isProcessAlive), { what: 'the children to end' });
  });

  it('does not start if aborted before', async () => {
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(encode(good, { signal })).rejects.toThrow('too late');
  });

  it('reports that ffmpeg could not be started', async () => {
    await expect(encode(good, { ffmpeg: '/no/such/ffmpeg' })).rejects.toMatchObject({
      code: 'video_failed',
      extra: { returncode: 127, stderr: expect.stringContaining('No such file') },
    });
  });
});
