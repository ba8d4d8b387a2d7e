import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { drawBusyJpeg, drawFrame, drawFrames } from '../harness/files/draw-frames.ts';
import { makePng } from '../harness/files/make-png.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

interface BadFrames {
  frames: { index: number; path: string; reason: string }[];
  count: number;
}

describeStack(missingPrograms('sshd', 'ffmpeg'), 'frames of videos', form => {
  const { client, sshd } = useRemoteStack(form);
  let sid: string;
  let good: string[];
  const at = (name: string) => join(sshd.home, name);

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    good = await drawFrames({ folder: at('good'), count: 6 });
  });

  const post = (body: object) =>
    client.fetch(`/api/remotes/${sid}/videos`, {
      method: 'POST',
      body: JSON.stringify({ 'content-type': 'video/mp4', ...body }),
    });
  /** Makes a video; its job at the end, and its status. */
  const make = async (body: object) => {
    const response = await post(body);
    expect(response.status).toBe(202);
    const { vsid } = (await response.json()) as { vsid: string };
    const job = await waitForEnd(client, vsid);
    const status = await client.get<Record<string, unknown>>(
      `/api/remotes/${sid}/videos/${vsid}/status`,
    );
    return { vsid, job, status, error: job.error as (typeof job.error & BadFrames) | null };
  };

  /** A file of each way to be broken, and what is said of it. */
  const breakFrames = async (): Promise<[string, RegExp][]> => {
    const folder = at('broken');
    mkdirSync(folder, { recursive: true });
    const png = await drawFrame({ width: 64, height: 48, kind: 'png' });
    const flipped = Buffer.from(png);
    flipped[60] = (flipped[60] ?? 0) ^ 0xff;
    const files: [string, Buffer | string, RegExp][] = [
      ['short.png', png.subarray(0, png.length / 2), /is cut short: it ends after \d+ bytes/],
      ['flipped.png', flipped, /is damaged at byte \d+/],
      [
        'junk.png',
        makePng(64, 48, Buffer.alloc(100, 7)),
        /cannot be decoded: its data are damaged/,
      ],
      ['few.png', makePng(64, 48, deflateSync(Buffer.alloc(90))), /cannot be decoded/],
      ['large.png', await drawFrame({ width: 66, height: 48, kind: 'png' }), /is of another size/],
      ['empty.png', '', /is empty/],
      ['drawing.png', '<svg/>', /a kind that is not taken \(SVG\): taken are JPEG, PNG/],
      ['words.png', 'words', /is not an image of a kind that is taken: JPEG, PNG/],
    ];
    for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
    return [
      ...files.map(([name, , reason]): [string, RegExp] => [join(folder, name), reason]),
      [join(folder, 'missing.png'), /is missing/],
      [folder, /is a directory/],
    ];
  };

  for (const encode of ['host', 'worker'] as const) {
    test(`each broken frame is named where the ${encode} encodes`, async () => {
      const broken = await breakFrames();
      const images = broken.flatMap(([path], i) => [good[i % good.length], path]);
      const { job, error, status } = await make({ images, encode });
      expect([job.state, error?.code, error?.count]).toEqual([
        'failed',
        'bad_frames',
        broken.length,
      ]);
      expect(error?.frames).toEqual(
        broken.map(([path, reason], i) => ({
          index: 2 * i + 1,
          path,
          reason: expect.stringMatching(reason),
        })),
      );
      expect(status).toMatchObject({ ok: false, phase: 'failed' });
      expect(JSON.stringify([status.message, error?.detail])).not.toMatch(/@ 0x|png_pipe/);
    });

    test(`broken frames are left out on request where the ${encode} encodes`, async () => {
      const broken = await breakFrames();
      const images = [...broken.map(([path]) => path), ...good];
      const { job, status } = await make({ images, encode, 'on-bad-frame': 'skip' });
      const skipped = broken.map(([path, reason], index) => ({
        index,
        path,
        reason: expect.stringMatching(reason),
      }));
      expect(job).toMatchObject({
        state: 'succeeded',
        result: { frames: good.length, encoded: encode, skipped, skippedCount: broken.length },
      });
      expect(status).toMatchObject({ ready: true, skipped, skippedCount: broken.length });
    });
  }

  test('the first one is named like the others', async () => {
    const broken = [at('nowhere.png'), at('nothing.png')];
    writeFileSync(broken[1] ?? '', '');
    for (const encode of ['host', 'worker']) {
      const { error } = await make({ images: [broken[0], ...good, broken[1]], encode });
      expect([error?.code, error?.frames]).toEqual([
        'bad_frames',
        [
          { index: 0, path: broken[0], reason: 'is missing' },
          { index: 7, path: broken[1], reason: 'is empty' },
        ],
      ]);
    }
  });

  test('one that only decoding finds is named too, and where none is left the video fails', async () => {
    const [, , [junk = ''] = []] = await breakFrames();
    for (const encode of ['host', 'worker']) {
      const { error } = await make({ images: [...good, junk], encode });
      expect(error?.frames).toEqual([
        { index: 6, path: junk, reason: expect.stringContaining('its data are damaged') },
      ]);
    }
    const { error } = await make({ images: [junk, junk], 'on-bad-frame': 'skip' });
    expect(error).toMatchObject({ code: 'bad_frames', count: 2 });
    expect(error?.hint).not.toContain('on-bad-frame');
  });

  test('a PNG whose colours are damaged is named, wherever it is encoded', async () => {
    const drawn = await drawFrame({ width: 64, height: 48, kind: 'png' });
    const bytes = await sharp(drawn).png({ palette: true, colours: 16 }).toBuffer();
    const [whole, damaged] = [at('palette.png'), at('other colours.png')];
    writeFileSync(whole, bytes);
    const colours = bytes.indexOf('PLTE') + 4;
    for (let i = colours; i < colours + 9; i++) bytes[i] = (bytes[i] ?? 0) ^ 0xff;
    writeFileSync(damaged, bytes);
    for (const place of [{ encode: 'host' }, { encode: 'worker' }, {}]) {
      expect((await make({ images: [whole, whole], ...place })).job.state).toBe('succeeded');
      const { error } = await make({ images: [whole, whole, damaged, whole], ...place });
      expect(error).toMatchObject({
        code: 'bad_frames',
        frames: [{ index: 2, path: damaged, reason: expect.stringContaining('checksum') }],
      });
    }
  });

  test('a width that cannot be is no fault of the frames', async () => {
    const [tall] = await drawFrames({ folder: at('tall'), count: 1, width: 4, height: 2_000 });
    for (const encode of ['host', 'worker']) {
      // The last one would be named if the frames were examined.
      const { error } = await make({ images: [tall, at('absent')], encode, width: 7_680 });
      expect([error?.code, error?.frames]).toEqual(['video_failed', undefined]);
      expect(error?.detail).toContain('"width"');
    }
  });

  test('a JPEG that has lost data is named too, and none is made of what is left', async () => {
    const bytes = await drawBusyJpeg();
    const [whole, lost] = [at('whole.jpg'), at('lost.jpg')];
    writeFileSync(whole, bytes);
    writeFileSync(lost, bytes.fill(0, bytes.length >> 2, bytes.length >> 1));
    const images = [whole, whole, whole, lost];
    const named = [{ index: 3, path: lost, reason: expect.stringContaining('are damaged') }];
    for (const place of [{ encode: 'host' }, { encode: 'worker' }, {}]) {
      const { error } = await make({ images, ...place });
      expect(error).toMatchObject({ code: 'bad_frames', frames: named });
    }
    const { job } = await make({ images, 'on-bad-frame': 'skip' });
    expect(job.result).toMatchObject({ frames: 3, skipped: named });
    // No decoder says of a restart marker that it has overwritten something.
    const restarted = await drawBusyJpeg();
    writeFileSync(lost, restarted.fill(Buffer.from('ffd3', 'hex'), 3_000, 3_002));
    const { error } = await make({ images, encode: 'worker' });
    expect(error).toMatchObject({
      frames: [{ ...named[0], reason: 'is damaged at byte 3000' }],
    });
  });

  test('the frame that keeps the host from encoding is named where no other place may', async () => {
    const [png = ''] = good;
    const [jpeg = ''] = await drawFrames({ folder: at('jpegs'), count: 1, kind: 'jpeg' });
    const [gif = ''] = await drawFrames({ folder: at('gifs'), count: 1, kind: 'gif' });
    for (const [images, reason] of [
      [[jpeg, jpeg, png], `${png} is of another kind: PNG, the first is JPEG`],
      [[gif, png], `${gif} is GIF, and a host takes JPEG and PNG`],
    ] as const) {
      const { error } = await make({ images, encode: 'host' });
      expect(error).toMatchObject({
        code: 'video_failed',
        detail: expect.stringContaining(reason),
      });
      expect((await make({ images })).job.result).toMatchObject({ encoded: 'worker' });
    }
  });

  test('where most differ from the first, leaving them out is no answer', async () => {
    const odd = at('odd.png');
    writeFileSync(odd, await drawFrame({ width: 66, height: 48, kind: 'png' }));
    const { error } = await make({ images: [odd, ...good], 'on-bad-frame': 'skip' });
    expect(error).toMatchObject({
      code: 'bad_frames',
      detail: expect.stringContaining(`${odd} has 66×48 pixels, and 6 of 7 frames differ from it`),
      count: 1,
      frames: [{ index: 0, path: odd }],
    });
  });

  test('a hundred are listed and all are counted', async () => {
    const images = Array.from({ length: 130 }, (_, i) => at(`nowhere/${i}.png`));
    const { error } = await make({ images });
    expect([error?.frames.length, error?.count]).toEqual([100, 130]);
    expect(error?.frames.at(-1)).toMatchObject({ index: 99, path: at('nowhere/99.png') });
  });

  test('a pattern of numbers is expanded on the host', async () => {
    const folder = at('numbered');
    mkdirSync(folder);
    for (const n of [8, 9, 10, 11, 13, 14]) {
      const name = `f${String(n).padStart(3, '0')}.png`;
      writeFileSync(join(folder, name), readFileSync(good[n % good.length] ?? ''));
    }
    const pattern = join(folder, 'f%03d.png');
    const frames = async (options: object) => {
      const { job, error } = await make({ pattern, ...options });
      return job.result?.frames ?? error;
    };
    expect(await frames({})).toBe(4);
    const { job, status } = await make({ pattern });
    const gap = { path: join(folder, 'f012.png'), after: 2 };
    expect([job.result, status]).toMatchObject([{ gap }, { gap }]);
    // The last step is over.
    expect(job).toMatchObject({ state: 'succeeded', message: null });
    expect(await frames({ first: 9, last: 11 })).toBe(3);
    expect(await frames({ first: 8, last: 14, step: 3 })).toBe(3);
    expect(await frames({ last: 14 })).toMatchObject({
      count: 1,
      frames: [{ index: 4, path: join(folder, 'f012.png'), reason: 'is missing' }],
    });
    expect(await frames({ first: 20 })).toMatchObject({
      code: 'bad_frames',
      detail: expect.stringContaining(`${pattern} from 20`),
    });
  });

  test('a star matches in natural order, also names that are not UTF-8', async () => {
    const folder = Buffer.from(`${at('star')}/`);
    mkdirSync(folder);
    const named = (name: string) => Buffer.concat([folder, Buffer.from(name, 'latin1')]);
    for (const [i, name] of ['v10.png', 'v9.png', "v\xe9'%1 `$x`.png"].entries())
      writeFileSync(named(name), readFileSync(good[i] ?? ''));
    const pattern = `${folder}v*.png`;
    for (const encode of ['host', 'worker']) {
      const { job } = await make({ pattern, encode });
      expect(job).toMatchObject({ state: 'succeeded', result: { frames: 3, encoded: encode } });
    }
    writeFileSync(named("v\xe9'%1 `$x`.png"), 'no picture');
    const { error } = await make({ pattern });
    expect(error?.frames).toMatchObject([{ index: 2, path: `${folder}v\\xe9'%1 \`$x\`.png` }]);
    const { job } = await make({ pattern, first: 1, last: 1 });
    expect(job.result).toMatchObject({ frames: 1 });
  });

  test('thousands of frames need no list', async () => {
    const folder = at('many');
    mkdirSync(folder);
    const [first = ''] = good;
    for (let n = 1; n <= 3000; n++) symlinkSync(first, join(folder, `${n}.png`));
    const { job } = await make({ pattern: join(folder, '%d.png'), first: 1, last: 3000, fps: 120 });
    expect(job).toMatchObject({ state: 'succeeded', result: { frames: 3000 } });
  });

  test('what does not go together is refused by field', async () => {
    for (const [body, field] of [
      [{ pattern: '/a/%d.png', images: ['/a'] }, 'pattern'],
      [{ pattern: '/a/b.png' }, 'pattern'],
      [{ pattern: '/a/%d*.png' }, 'pattern'],
      [{ pattern: '/a*/%d.png' }, 'pattern'],
      [{ pattern: '/a%d/b%d/c.png' }, 'pattern'],
      [{ pattern: 'a/%d.png' }, 'pattern'],
      [{ pattern: '/a/%d.png', first: 3, last: 2 }, 'last'],
      [{ images: ['/a'], step: 2 }, 'step'],
      [{ images: ['/a'], codec: 'vp9' }, 'codec'],
      [{ images: ['/a'], background: 'red' }, 'background'],
      [{ images: ['/a'], fps: 0.05 }, 'fps'],
    ] as const) {
      const problem = await expectProblem(await post(body), 400, 'invalid_input');
      expect(problem).toMatchObject({ fields: [{ field }] });
    }
  });
});
