import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { readLabels } from '../harness/files/read-labels.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { type Job, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

const FRAMES = 300;
const FPS = 25;
const SIZE = { width: 192, height: 108 };
/** A frame's number in bits: white or black columns. */
const BITS = 9;

/** In the page: seeks to the middle of each frame, and reads the number that it shows. */
const SEEK_EACH = `async ({ base64, type, frames, fps, bits }) => {
  const video = document.createElement('video');
  const blob = await (await fetch('data:' + type + ';base64,' + base64)).blob();
  const loaded = new Promise((resolve, reject) => {
    video.onloadeddata = resolve;
    video.onerror = () => reject(new Error(video.error.message));
  });
  video.muted = true;
  video.src = URL.createObjectURL(blob);
  await loaded;
  const canvas = document.createElement('canvas');
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  // 'seeked' may come before the picture is there to be drawn.
  const seek = async n => {
    const seeked = new Promise(resolve => (video.onseeked = resolve));
    const drawn = new Promise(resolve => video.requestVideoFrameCallback(resolve));
    video.currentTime = (n + 0.5) / fps;
    await seeked;
    await drawn;
  };
  // A seek to the picture that is shown draws none.
  await seek(frames - 1);
  const seen = [];
  for (let n = 0; n < frames; n++) {
    await seek(n);
    context.drawImage(video, 0, 0);
    let number = 0;
    for (let bit = 0; bit < bits; bit++) {
      const x = Math.floor(((bit + 0.5) * canvas.width) / bits);
      if (context.getImageData(x, canvas.height / 2, 1, 1).data[0] > 128) number |= 1 << bit;
    }
    seen.push(number);
  }
  return seen;
}`;

/** A picture that tells its number. */
function drawNumber(n: number): Promise<Buffer> {
  const pixels = Buffer.alloc(SIZE.width * SIZE.height);
  for (let i = 0; i < pixels.length; i++) {
    const bit = Math.floor(((i % SIZE.width) * BITS) / SIZE.width);
    pixels[i] = (n >> bit) & 1 ? 235 : 20;
  }
  return sharp(pixels, { raw: { ...SIZE, channels: 1 } })
    .png()
    .toBuffer();
}

/** The number that a picture tells. */
function readNumber(grey: Buffer, { width, height }: { width: number; height: number }): number {
  let n = 0;
  for (let bit = 0; bit < BITS; bit++) {
    const x = Math.floor(((bit + 0.5) * width) / BITS);
    if ((grey[Math.floor(height / 2) * width + x] ?? 0) > 128) n |= 1 << bit;
  }
  return n;
}

describeStack(missingPrograms('sshd', 'ffmpeg', 'chromium'), 'the frames of a video', form => {
  const temp = makeTempDir('video-frames');
  const { client, sshd } = useRemoteStack(form);
  let browser: Browser;
  let page: Page;
  let sid: string;
  let pattern: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    const folder = join(sshd.home, 'numbers');
    mkdirSync(folder);
    for (let n = 0; n < FRAMES; n++) writeFileSync(join(folder, `n${n}.png`), await drawNumber(n));
    pattern = join(folder, 'n%d.png');
    browser = await chromium.launch({
      executablePath: findProgram('chromium'),
      args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update'],
    });
    page = await browser.newPage();
  });
  afterAll(async () => {
    await browser?.close();
    temp.remove();
  });

  /** Makes a video; its address and its bytes. */
  const make = async (body: object) => {
    const given = { 'content-type': 'video/mp4', pattern, fps: FPS, ...body };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, given);
    const job: Job = await waitForEnd(client, vsid);
    expect(job).toMatchObject({ state: 'succeeded', error: null });
    const at = `/api/remotes/${sid}/videos/${vsid}`;
    return { at, job, bytes: Buffer.from(await (await client.fetch(at)).arrayBuffer()) };
  };

  for (const options of [
    { 'content-type': 'video/mp4', encode: 'host' },
    { 'content-type': 'video/mp4', encode: 'worker' },
    { 'content-type': 'video/webm', encode: 'host' },
    { 'content-type': 'video/webm', encode: 'worker', codec: 'av1' },
  ] as const) {
    test(`frame n is frame n of the list: ${Object.values(options).join(', ')}`, async () => {
      const { bytes } = await make(options);
      const given = { base64: bytes.toString('base64'), type: options['content-type'] };
      const numbers = await page.evaluate(
        `(${SEEK_EACH})(${JSON.stringify({ ...given, frames: FRAMES, fps: FPS, bits: BITS })})`,
      );
      expect(numbers).toEqual(Array.from({ length: FRAMES }, (_, n) => n));
    });
  }

  test.each([
    ['video/mp4', FPS, 25],
    ['video/webm', FPS, 25],
    ['video/mp4', 0.5, 1],
    ['video/webm', 29.97, 29],
  ])('%s at %d fps has a key frame at most every second', async (type, fps, every) => {
    const { bytes } = await make({ 'content-type': type, fps, last: 59, encode: 'host' });
    const path = join(temp.path, 'video');
    writeFileSync(path, bytes);
    const words = ['-v', 'error', '-show_entries', 'packet=flags', '-of', 'csv=p=0', path];
    const flags = execFileSync('ffprobe', words, { encoding: 'utf8' }).trim().split('\n');
    const keys = flags.flatMap((flag, n) => (flag.startsWith('K') ? [n] : []));
    expect(keys).toEqual(Array.from({ length: Math.ceil(60 / every) }, (_, i) => i * every));
  });

  /** A pattern of the same pictures, every second of which stores its pixels otherwise. */
  async function storeAlternating(): Promise<string> {
    const folder = join(sshd.home, 'alternating');
    mkdirSync(folder);
    for (let n = 0; n < FRAMES; n++) {
      const picture = await drawNumber(n);
      const stored = n % 2 ? sharp(picture).toColourspace('srgb').png().toBuffer() : picture;
      writeFileSync(join(folder, `n${n}.png`), await stored);
    }
    return join(folder, 'n%d.png');
  }

  test('the poster is the first frame, and each cue shows the frame of its time', async () => {
    const alternating = await storeAlternating();
    for (const given of [
      { encode: 'host' },
      { encode: 'worker' },
      { encode: 'host', pattern: alternating },
      { encode: 'worker', pattern: alternating },
    ]) {
      const { at, job } = await make(given);
      expect(JSON.stringify(job.result)).not.toContain('videos/');
      const poster = await client.fetch(`${at}/poster`);
      expect([poster.status, poster.headers.get('Content-Type')]).toEqual([200, 'image/jpeg']);
      const first = sharp(Buffer.from(await poster.arrayBuffer()));
      expect(await first.metadata()).toMatchObject({ format: 'jpeg', ...SIZE });
      expect(readNumber(await first.greyscale().raw().toBuffer(), SIZE)).toBe(0);

      const cues = await client.fetch(`${at}/sprite.vtt`);
      expect(cues.headers.get('Content-Type')).toMatch(/^text\/vtt/);
      const sprite = sharp(Buffer.from(await (await client.fetch(`${at}/sprite`)).arrayBuffer()));
      const listed = [
        ...(await cues.text()).matchAll(
          /00:00:(\S+) --> 00:00:(\S+)\nsprite#xywh=(\d+),(\d+),(\d+),(\d+)\n/g,
        ),
      ].map(match => match.slice(1).map(Number));
      expect(listed.map(([from, to]) => [from, to])).toEqual(
        Array.from({ length: FRAMES / FPS }, (_, i) => [i, i + 1]),
      );
      for (const [from = 0, , left = 0, top = 0, width = 0, height = 0] of listed) {
        const tile = sprite.clone().extract({ left, top, width, height }).greyscale();
        expect(readNumber(await tile.raw().toBuffer(), { width, height })).toBe(from * FPS);
      }
    }
  });

  test('a label tells the frame, or its file', async () => {
    for (const encode of ['host', 'worker']) {
      for (const [label, shown] of [
        ['name', ['n9.png ', 'n10.png', 'n11.png']],
        ['frame', ['0', '1', '2']],
      ] as const) {
        const { bytes } = await make({ encode, label, first: 9, last: 11, quality: 1 });
        const path = join(temp.path, 'labelled');
        writeFileSync(path, bytes);
        expect(await readLabels(path, { length: shown[0].length })).toEqual(shown);
      }
    }
  });

  test('stills are there once the video is', async () => {
    const given = { 'content-type': 'video/mp4', images: ['/nowhere.png'] };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, given);
    await waitForEnd(client, vsid);
    for (const still of ['poster', 'sprite', 'sprite.vtt'])
      await expectProblem(
        await client.fetch(`/api/remotes/${sid}/videos/${vsid}/${still}`),
        404,
        'not_found',
      );
  });
});
