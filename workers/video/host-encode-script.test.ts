import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import sharp from 'sharp';
import { afterAll, describe, expect, it } from 'vitest';
import { countFrames, probeVideo } from '../../demo/probe-video.ts';
import { findBundledFfmpeg } from '../../shared/process/bundled-ffmpeg.ts';
import { drawFrame, drawFrames } from '../../test/harness/files/draw-frames.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { SHADOWS } from '../../test/harness/hosts/sh-is-bash.ts';
import { chooseEncoder } from './ffmpeg-arguments.ts';
import { FfmpegProgress } from './ffmpeg-progress.ts';
import { planLabels } from './frame-labels.ts';
import { type HostEncodeOptions, hostEncodeScript } from './host-encode-script.ts';
import { toHostVideoError } from './video-error.ts';

const temp = makeTempDir('encode-host');
afterAll(() => temp.remove());
const at = (name: string) => join(temp.path, name);
const SMALL = { kind: 'png', width: 64, height: 48 } as const;

let runs = 0;
/** Runs the script as the agent does: from a file, with the run's directory in the environment. */
async function runScript(
  options: Partial<HostEncodeOptions> & { images: string[] },
  shell = 'sh',
  functions = {},
) {
  const run = at(`run ${runs++}`);
  mkdirSync(run);
  const script = hostEncodeScript({
    pictures: SMALL,
    type: 'video/mp4',
    ffmpeg: 'ffmpeg',
    limits: AMPLE,
    ...options,
  });
  writeFileSync(join(run, 'script'), script);
  const [program = '', ...args] = shell.split(' ');
  const child = spawn(program, [...args, join(run, 'script')], {
    cwd: temp.path,
    env: { ...process.env, ...functions, WINDLASS_RUN: run },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    stdout += piece;
  });
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    stderr += piece;
  });
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  return { code, stdout, stderr, video: join(run, 'video'), files: readdirSync(run) };
}

/** The number of frames that this progress output reports. */
function framesSaid(text: string): number {
  const reader = new FfmpegProgress();
  reader.add(text);
  return reader.frames;
}

describe('hostEncodeScript', () => {
  it.each([
    { type: 'video/mp4', kind: 'png' },
    { type: 'video/mp4', kind: 'jpeg' },
    { type: 'video/webm', kind: 'png' },
    { type: 'video/webm', kind: 'jpeg' },
  ] as const)('makes $type of $kind frames, padded to even sides', async ({ type, kind }) => {
    const images = await drawFrames({ folder: at(kind), count: 7, width: 63, height: 41, kind });
    const result = await runScript({ images, type, pictures: { kind, width: 63, height: 41 } });
    const files = ['poster.jpg', 'script', 'sprite.jpg', 'video'];
    expect(result).toMatchObject({ code: 0, stderr: '', files });
    for (const still of ['poster.jpg', 'sprite.jpg']) {
      const { format, width, height } = await sharp(join(dirname(result.video), still)).metadata();
      expect([format, width, height]).toEqual(['jpeg', 64, 42]);
    }
    expect(await probeVideo(result.video)).toEqual({ frames: 7, width: 64, height: 42 });
    expect(framesSaid(result.stdout)).toBe(7);
    expect(result.stdout).toMatch(/^((frame|progress)=.*\n)+$/);
  });

  it.each([
    { width: 300, height: 200, count: 10, sprite: [160, 107] },
    { width: 300, height: 200, count: 60, sprite: [480, 107] },
    { width: 200, height: 300, count: 10, sprite: [107, 160] },
    { width: 200, height: 300, count: 60, sprite: [321, 160] },
  ])(
    'makes a sprite of odd sides: $count frames of $width×$height',
    async ({ sprite, ...film }) => {
      const folder = at(`sprite-${film.width}-${film.count}`);
      const images = await drawFrames({ folder, ...film });
      const ffmpegs = ['ffmpeg', (await findBundledFfmpeg()) ?? ''];
      for (const type of ['video/mp4', 'video/webm'] as const) {
        for (const ffmpeg of ffmpegs) {
          const result = await runScript({ images, type, ffmpeg, pictures: { ...SMALL, ...film } });
          expect(result).toMatchObject({ code: 0, stderr: '' });
          const made = await sharp(join(dirname(result.video), 'sprite.jpg')).metadata();
          expect([made.width, made.height]).toEqual(sprite);
        }
      }
    },
  );

  it('makes a video where the stills cannot be made', async () => {
    const images = await drawFrames({ folder: at('no stills'), count: 3 });
    const ffmpeg = at('ffmpeg without stills');
    const refuse = 'case $* in *sprite*) echo no sprite >&2; exit 1 ;; esac';
    writeFileSync(ffmpeg, `#!/bin/sh\n${refuse}\nexec ffmpeg "$@"\n`, { mode: 0o755 });
    const labels = planLabels(
      'frame',
      images.map((path, index) => ({ path, index })),
      SMALL,
    );
    for (const options of [{ images }, { images, labels }]) {
      const result = await runScript({ ...options, ffmpeg });
      expect(result).toMatchObject({ code: 0, files: ['script', 'video'] });
      expect(await countFrames(result.video)).toBe(3);
    }
  });

  it.each(['bash', 'dash', 'ksh', 'zsh', 'busybox sh'])(
    'reads every path as it is with %s',
    async shell => {
      const folder = at(`names-${shell}`);
      const plain = await drawFrames({ folder, count: 4 });
      const names = ['with\nnewline', `it's "$HOME" \`id\` \\ *`, 'é\u0081\u{1f600}', ' '];
      for (const name of names) {
        writeFileSync(join(folder, name), await drawFrame({ width: 64, height: 48, kind: 'png' }));
      }
      const images = [...plain, ...names.map(name => join(folder, name))];
      const result = await runScript({ images, fps: 12 }, shell);
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(await countFrames(result.video)).toBe(8);
      const missing = await runScript({ images: [...images, join(folder, 'gone')] }, shell);
      expect(missing).toMatchObject({ code: 1, files: ['script'] });
    },
  );

  it('fails if a frame is missing or cannot be read, and names it', async () => {
    const images = await drawFrames({ folder: at('missing'), count: 3 });
    for (const bad of [at('gone'), temp.path]) {
      for (const place of [0, 1, 3]) {
        const result = await runScript({ images: images.toSpliced(place, 0, bad) });
        expect(result).toMatchObject({ code: 1, files: ['script'] });
        expect(result.stderr).toContain(bad);
      }
    }
  });

  it('reports a full disk', async () => {
    const images = await drawFrames({ folder: at('large'), count: 1 });
    // Every write to /dev/full fails as on a full disk.
    const ffmpeg = at('ffmpeg to a full disk');
    writeFileSync(
      ffmpeg,
      '#!/bin/sh\nfor out; do :; done\nln -sf /dev/full "$out"\nexec ffmpeg "$@"\n',
      { mode: 0o755 },
    );
    const result = await runScript({ images, ffmpeg });
    expect(result.files).toEqual(['script']);
    expect(
      toHostVideoError({ returncode: result.code ?? -1, stderr: result.stderr }),
    ).toMatchObject({ code: 'remote_disk_full' });
  });

  it('fails with what ffmpeg prints about a broken frame', async () => {
    const images = await drawFrames({ folder: at('broken'), count: 5 });
    writeFileSync(
      images[2] ?? '',
      (await drawFrame({ width: 64, height: 48, kind: 'png' })).subarray(0, 100),
    );
    const result = await runScript({ images });
    expect(result).toMatchObject({ code: 1, files: ['script'] });
    expect(result.stderr).toContain('png');
  });

  it('fails when ffmpeg cannot be run', async () => {
    const images = await drawFrames({ folder: at('no-ffmpeg'), count: 1 });
    expect(await runScript({ images, ffmpeg: '/no/such/ffmpeg' })).toMatchObject({
      code: 127,
      files: ['script'],
    });
  });

  it('fails when one file holds two pictures', async () => {
    const images = await drawFrames({ folder: at('double'), count: 2 });
    const picture = await drawFrame({ width: 64, height: 48, kind: 'png' });
    writeFileSync(images[1] ?? '', Buffer.concat([picture, picture]));
    const result = await runScript({ images });
    expect(result).toMatchObject({ code: 1, files: ['script'] });
    expect(result.stderr).toContain('3 pictures for 2 frames');
  });

  it.each([
    'ffconcat version 1.0\nfile secret.ts\n',
    '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.ts\n#EXT-X-ENDLIST\n',
  ])('opens no other file that a frame names: %j', async playlist => {
    const secret = at('secret.ts');
    const frame = at('playlist.png');
    writeFileSync(frame, playlist);
    const encoder = ['-t', '1', '-c:v', 'mpeg2video', '-f', 'mpegts', secret];
    execFileSync('ffmpeg', [
      '-y',
      '-loglevel',
      'error',
      '-f',
      'lavfi',
      '-i',
      'color=s=64x48',
      ...encoder,
    ]);
    // Without these arguments ffmpeg reads it.
    const whitelist = [
      '-protocol_whitelist',
      'file,pipe,crypto,data',
      '-allowed_extensions',
      'ALL',
    ];
    const options = playlist.startsWith('#') ? whitelist : whitelist.slice(0, 2);
    const careless = [...options, '-i', frame, '-f', 'framecrc', '-'];
    expect(
      execFileSync('ffmpeg', ['-loglevel', 'error', ...careless], { encoding: 'utf8' }),
    ).toContain('64x48');
    // This FIFO has no writer, so opening it would block.
    rmSync(secret);
    execFileSync('mkfifo', [secret]);
    for (const kind of ['png', 'jpeg'] as const) {
      const result = await runScript({ images: [frame, frame], pictures: { ...SMALL, kind } });
      expect(result).toMatchObject({ files: ['script'] });
      expect(result.code).not.toBe(0);
    }
    rmSync(secret);
  });

  it('works with an ffmpeg of 2018', async () => {
    const ffmpeg = (await findBundledFfmpeg()) ?? '';
    const images = await drawFrames({ folder: at('old'), count: 4, width: 33 });
    const pictures = { ...SMALL, width: 33 };
    for (const type of ['video/mp4', 'video/webm'] as const) {
      const result = await runScript({ images, type, pictures, ffmpeg });
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(await probeVideo(result.video)).toEqual({ frames: 4, width: 34, height: 48 });
    }
  });

  it('runs none of the functions that an account exports to bash', async () => {
    const images = await drawFrames({ folder: at('shadows'), count: 2 });
    const result = await runScript({ images }, 'bash --posix', SHADOWS);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(await countFrames(result.video)).toBe(2);
  });

  it('takes few forks for many frames', async () => {
    const [frame = ''] = await drawFrames({ folder: at('many'), count: 1 });
    const images = Array.from({ length: 2000 }, () => frame);
    const script = hostEncodeScript({
      images,
      pictures: SMALL,
      type: 'video/mp4',
      ffmpeg: 'ffmpeg',
      limits: AMPLE,
    });
    expect(script.match(/^cat /gm)?.length).toBeLessThan(5);
    const start = performance.now();
    const result = await runScript({ images });
    console.info(`2,000 tiny frames on the host in ${Math.round(performance.now() - start)} ms`);
    expect(result.code).toBe(0);
    expect(await countFrames(result.video)).toBe(2000);
  });

  /** Runs the script with these commands of sh in place of ffmpeg. */
  async function runHostile(commands: string) {
    const images = await drawFrames({ folder: at('confined'), count: 1 });
    const ffmpeg = at('hostile');
    writeFileSync(ffmpeg, `#!/bin/sh\ncat >/dev/null\n${commands}\nexit 1\n`, { mode: 0o755 });
    const limits = { ...AMPLE, fileBytes: 1 << 20 };
    const { code, stderr } = await runScript({ images, ffmpeg, limits });
    expect(code).toBe(1);
    return stderr;
  }

  it('confines ffmpeg: no environment, no large files', async () => {
    process.env.WINDLASS_CANARY = 'canary';
    const commands = `env >&2; head -c 9000000 /dev/zero >'${at('big')}'`;
    const stderr = await runHostile(commands).finally(() => {
      delete process.env.WINDLASS_CANARY;
    });
    expect(stderr).toContain('PATH=');
    expect(stderr).not.toContain('canary');
    expect(statSync(at('big')).size).toBeLessThanOrEqual(1 << 20);
  });

  it('confines ffmpeg: addresses, processor time, open files and cores', async () => {
    const stderr = await runHostile('for limit in v t n c; do ulimit -H -$limit; done >&2');
    const [kibibytes, seconds, files, core] = stderr.trim().split('\n').map(Number);
    // Includes memory that is reserved and never used.
    expect(kibibytes).toBeLessThanOrEqual((AMPLE.memory + 6 * 2 ** 30) / 1_024);
    // The limit is for up to 64 processors.
    expect(seconds).toBeLessThanOrEqual(64 * AMPLE.seconds);
    expect(files).toBeLessThanOrEqual(256);
    expect(core).toBe(0);
  });

  it('confines ffmpeg: no network', async context => {
    if (spawnSync('unshare', ['--user', '--net', 'true']).status !== 0)
      return context.skip('needs a system that permits network namespaces');
    const server = createServer(socket => socket.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    let reached = 0;
    server.on('connection', () => reached++);
    const { port } = server.address() as AddressInfo;
    const connect = `require('node:net').connect(${port}, '127.0.0.1').on('error', e => console.error(e.code))`;
    const stderr = await runHostile(`${process.execPath} -e "${connect}"`);
    server.close();
    expect([reached, stderr]).toEqual([0, expect.stringMatching(/ENETUNREACH|ECONNREFUSED/)]);
  });

  it('refuses a path that no file can have', () => {
    const images = ['/a\0b'];
    expect(() =>
      hostEncodeScript({
        images,
        pictures: SMALL,
        type: 'video/mp4',
        ffmpeg: 'ffmpeg',
        limits: AMPLE,
      }),
    ).toThrow('NUL');
  });
});

describe('progress', () => {
  it('is the last whole line', () => {
    expect(framesSaid('')).toBe(0);
    expect(framesSaid('frame=3\nfps=1\nframe=5\nprogress=continue\nframe=9')).toBe(5);
    expect(framesSaid('frame=   4\n')).toBe(4);
  });

  it('is assembled from pieces', () => {
    const reader = new FfmpegProgress();
    const grown = [...'frame=12\nfps=3\nframe=7\nframe=25\n'].map(char => [
      reader.add(char),
      reader.frames,
    ]);
    expect(grown.filter(([isGrown]) => isGrown).map(([, frames]) => frames)).toEqual([12, 25]);
  });
});

it('refuses what would take an encoder gigabytes of memory', () => {
  const pictures = { kind: 'png', width: 8192, height: 8192 } as const;
  const given = { images: ['/a'], ffmpeg: 'ffmpeg', limits: AMPLE, pictures };
  for (const codec of [undefined, 'vp9', 'av1'] as const) {
    const plan = (width?: number) => () =>
      hostEncodeScript({ ...given, type: 'video/webm', codec, width });
    expect(plan()).toThrow(
      expect.objectContaining({
        code: 'video_failed',
        message: expect.stringMatching(/too many for (vp9|av1)/),
      }),
    );
    expect(plan(4690)).not.toThrow();
  }
  expect(() => hostEncodeScript({ ...given, type: 'video/mp4' })).not.toThrow();
});

it('chooses the encoder of type and codec', () => {
  expect(chooseEncoder(['libx264'], { type: 'video/mp4' })).toBe('libx264');
  expect(chooseEncoder(['libx264', 'libvpx'], { type: 'video/webm' })).toBeUndefined();
});

it('chooses an encoder of AV1 that takes small pictures and key frames alone', () => {
  const av1 = { type: 'video/mp4', codec: 'av1', size: { width: 64, height: 64 } } as const;
  const both = ['libaom-av1', 'libsvtav1'];
  expect(chooseEncoder(both, av1)).toBe('libsvtav1');
  expect(chooseEncoder(both, { ...av1, size: { width: 62, height: 640 } })).toBe('libaom-av1');
  expect(chooseEncoder(both, { ...av1, fps: 1.9 })).toBe('libaom-av1');
  expect(chooseEncoder(both, { ...av1, fps: 0.9 })).toBe('libsvtav1');
  expect(chooseEncoder(['libsvtav1'], { ...av1, fps: 1.9 })).toBe('libsvtav1');
});
