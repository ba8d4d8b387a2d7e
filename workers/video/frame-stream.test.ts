import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { drawFrame, drawFrames, placesOf } from '../../test/harness/files/draw-frames.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { frameHeadsScript, readHeads } from './frame-heads.ts';
import { encodePath } from './frame-path.ts';
import { FRAME_STREAM_COMMAND, frameStreamScript } from './frame-stream.ts';
import { FrameValidator } from './frame-validator.ts';
import { type FrameFailure, type ReadFrame, readFrames } from './read-frames.ts';
import { validateFrames } from './validate-frames.ts';

const temp = makeTempDir('transfer');
afterAll(() => temp.remove());

/** Runs the command by the account's shell, as sshd does. */
function runLike(shell: readonly string[], script: string) {
  const [program = '', ...args] = shell;
  const child = spawn(program, [...args, '-c', FRAME_STREAM_COMMAND], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(script);
  return child;
}

async function transfer(
  images: string[],
  options: { headBytes?: number; limit?: number; shell?: string[] } = {},
) {
  const { shell = ['/bin/sh'], limit, headBytes } = options;
  const { stdout } = runLike(shell, frameStreamScript({ frames: placesOf(images), headBytes }));
  const frames: (ReadFrame | FrameFailure)[] = [];
  for await (const frame of readFrames(stdout, { frames: placesOf(images), limit }))
    frames.push(frame);
  return frames;
}

describe('frames over one channel', () => {
  const bytes = Buffer.alloc(200_000, Buffer.from('\n0 end frame \0\xff', 'latin1'));
  const names = [
    'plain',
    'with\nnewline',
    `it's "$HOME" \`id\` \\ *`,
    'é\u0081\u{1f600}',
    // Its second half is one that stands for a byte.
    '\u{1f4f7}',
    '-n',
    ' ',
    '\udcff\n\n',
  ];

  it.each(['sh', 'bash', 'dash', 'ksh', 'zsh', 'busybox sh', 'csh', 'fish'])(
    'are exact, whatever they and their names hold, with %s',
    async shell => {
      const paths = names.map(name => join(temp.path, name));
      for (const [i, path] of paths.entries()) writeFileSync(encodePath(path), bytes.subarray(i));
      const frames = await transfer(paths, { shell: shell.split(' ') });
      expect(frames.map(({ index, path }) => ({ index, path }))).toEqual(
        paths.map((path, index) => ({ index, path })),
      );
      for (const [i, frame] of frames.entries()) {
        expect('bytes' in frame && frame.bytes.equals(bytes.subarray(i)), names[i]).toBe(true);
        expect(frame).toMatchObject({ size: bytes.length - i });
      }
    },
  );

  it('report problems by path', async () => {
    const at = (name: string) => join(temp.path, name);
    mkdirSync(at('folder'));
    writeFileSync(at('empty'), '');
    writeFileSync(at('good'), 'good');
    symlinkSync(at('good'), at('link'));
    symlinkSync(at('nowhere'), at('dangling'));
    const paths = [at('gone'), at('folder'), '/dev/zero', at('empty'), at('dangling'), at('link')];
    expect(await transfer(paths)).toMatchObject([
      { problem: 'is missing' },
      { problem: 'is a directory' },
      { problem: 'is not a regular file' },
      { size: 0 },
      { problem: 'is missing' },
      { bytes: Buffer.from('good') },
    ]);
  });

  it('are cut to their heads on request, and refused past the limit', async () => {
    const path = join(temp.path, 'long');
    writeFileSync(path, bytes);
    expect(await transfer([path, path], { headBytes: 1000 })).toMatchObject([
      { size: 1000 },
      { size: 1000 },
    ]);
    expect(await transfer([path, path], { limit: 1000 })).toMatchObject([
      { problem: 'is larger than 1000 bytes' },
      { problem: 'is larger than 1000 bytes' },
    ]);
  });

  it('may be split anywhere by the stream', async () => {
    const images = ['/a', '/b'];
    const mark = '0123456789abcdef0123456789abcdef';
    const text = `Welcome!\n\nwindlass-frames ${mark}\n${mark} frame 0\nx\n${mark} en\n${mark} end 0 0\n${mark} problem 1 missing\n${mark} done 2\n`;
    const stream = Readable.from([...text].map(char => Buffer.from(char)));
    const frames = [];
    for await (const frame of readFrames(stream, { frames: placesOf(images) })) frames.push(frame);
    expect(frames).toMatchObject([
      { bytes: Buffer.from(`x\n${mark} en`) },
      { problem: 'is missing' },
    ]);
  });

  it('fail as a lost connection when the stream ends at any byte', async () => {
    const path = join(temp.path, 'short');
    writeFileSync(path, 'some bytes');
    const images = [path, path];
    const chunks: Buffer[] = [];
    for await (const chunk of runLike(['/bin/sh'], frameStreamScript({ frames: placesOf(images) }))
      .stdout)
      chunks.push(chunk);
    const whole = Buffer.concat(chunks);
    for (let length = 0; length < whole.length; length++) {
      const read = async () => {
        for await (const _ of readFrames(Readable.from([whole.subarray(0, length)]), {
          frames: placesOf(images),
        }));
      };
      await expect(read(), `${length} bytes`).rejects.toMatchObject({
        code: 'remote_connection_failed',
      });
    }
  });

  it('stop the host when the reader stops, and are not read ahead', async () => {
    const path = join(temp.path, 'big');
    writeFileSync(path, Buffer.alloc(4_000_000));
    const images = Array.from({ length: 200 }, () => path);
    const child = runLike(['/bin/sh'], frameStreamScript({ frames: placesOf(images) }));
    let received = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    child.stdout.pause();
    for await (const frame of readFrames(child.stdout, { frames: placesOf(images) }))
      if (frame.index === 2) break;
    expect(received).toBeLessThan(3 * 4_000_000 + 1_000_000);
    await waitFor(() => child.exitCode ?? child.signalCode, { what: 'the end of the script' });
  });

  it('stop when the signal is aborted', async () => {
    const abort = new AbortController();
    const stream = new Readable({ read() {} });
    const frames = readFrames(stream, { frames: placesOf(['/a']), signal: abort.signal });
    const next = frames.next();
    abort.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    expect(stream.destroyed).toBe(true);
  });
});

describe('validateFrames', () => {
  async function validate(images: string[]) {
    const validator = new FrameValidator();
    let scripts = 0;
    await validateFrames({
      frames: placesOf(images),
      validator,
      open: async script => {
        scripts++;
        return runLike(['/bin/sh'], script).stdout;
      },
    });
    return { validator, scripts };
  }

  it('finds what does not fit among the frames', async () => {
    const [first = '', second = ''] = await drawFrames({
      folder: join(temp.path, 'mixed'),
      count: 2,
    });
    const other = join(temp.path, 'other-size');
    writeFileSync(other, await drawFrame({ width: 66, height: 48, kind: 'png' }));
    const jpeg = join(temp.path, 'other.png');
    writeFileSync(jpeg, await drawFrame({ width: 64, height: 48, kind: 'jpeg' }));
    const playlist = join(temp.path, 'playlist.png');
    writeFileSync(playlist, `#EXTM3U\n#EXTINF:1,\nfile://${first}\n`);
    const gone = join(temp.path, 'no\nsuch');
    const { validator } = await validate([first, other, second, temp.path, jpeg, playlist, gone]);
    expect(validator.first).toEqual({ kind: 'png', width: 64, height: 48, alpha: true });
    expect(validator.needsWorker).toContain('the first is');
    expect(validator.problems).toEqual([
      { index: 1, path: other, reason: 'is of another size: 66×48 pixels, the first is 64×48' },
      { index: 3, path: temp.path, reason: 'is a directory' },
      { index: 5, path: playlist, reason: expect.stringContaining('is not an image') },
      { index: 6, path: join(temp.path, 'no\\nsuch'), reason: 'is missing' },
    ]);
  });

  it('reads a longer head of JPEGs with long metadata, first or later', async () => {
    const plain = await drawFrame({ width: 30, height: 20, kind: 'jpeg' });
    const segment = Buffer.alloc(4 + 60_000);
    segment.writeUInt32BE(0xffe1_0000 + 60_002);
    const paths = [2, 0, 1].map(count => {
      const path = join(temp.path, `segments-${count}`);
      const segments = Array.from({ length: count }, () => segment);
      writeFileSync(path, Buffer.concat([plain.subarray(0, 2), ...segments, plain.subarray(2)]));
      return path;
    });
    const cut = join(temp.path, 'cut');
    writeFileSync(cut, plain.subarray(0, 20));
    const { validator, scripts } = await validate([...paths, cut]);
    expect(scripts).toBe(4);
    expect(validator.checked).toBe(4);
    expect(validator.problems).toEqual([{ index: 3, path: cut, reason: 'is cut short' }]);
  });

  it('keeps no long heads in memory', async () => {
    const plain = await drawFrame({ width: 30, height: 20, kind: 'jpeg' });
    const thumbnail = Buffer.alloc(4 + 3_000);
    thumbnail.writeUInt32BE(0xffe1_0000 + 3_002);
    const path = join(temp.path, 'with-thumbnail');
    const parts = [plain.subarray(0, 2), thumbnail, plain.subarray(2), Buffer.alloc(2 ** 22)];
    writeFileSync(path, Buffer.concat(parts));
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    }, 10);
    const { validator } = await validate(Array.from({ length: 100 }, () => path));
    clearInterval(watch);
    expect(validator).toMatchObject({ checked: 100, ok: true, varies: false });
    // All of them are 420 MB.
    expect(most).toBeLessThan(200e6);
  });

  it.each(['sh', 'bash', 'dash', 'ksh', 'zsh', 'busybox sh'])(
    'reads heads of many files in few forks with %s, whatever they and their names hold',
    async shell => {
      const folder = join(temp.path, `heads-${shell}`);
      mkdirSync(folder);
      const names = [
        'plain',
        'with\nnewline',
        `it's "$HOME" <==`,
        '==> plain <==',
        'gone',
        'empty',
      ];
      const paths = names.map(name => join(folder, name));
      for (const [i, path] of paths.entries())
        if (i < 4) writeFileSync(path, `${i}\n==> ${paths[i + 1]} <==\n`.repeat(i + 1));
      writeFileSync(paths.at(-1) ?? '', '');
      const frames = placesOf([...paths, folder]);
      const headBytes = 20;
      const { stdout } = runLike(shell.split(' '), frameHeadsScript(frames, headBytes));
      const heads = await readHeads(stdout, frames, { headBytes, parse: head => head });
      expect(heads).toEqual([
        ...paths.slice(0, 4).map(path => {
          const bytes = readFileSync(path);
          return { bytes: bytes.subarray(0, 20), isCut: bytes.length > 20 };
        }),
        { problem: 'is missing' },
        { bytes: Buffer.alloc(0), isCut: false },
        { problem: 'is a directory' },
      ]);
    },
  );

  it('reads each file alone where the host has other tools', async () => {
    const [first = ''] = await drawFrames({ folder: join(temp.path, 'alone'), count: 1 });
    const frames = placesOf([first, join(temp.path, 'gone')]);
    const validator = new FrameValidator();
    const open = async (script: string) =>
      runLike(['/bin/sh'], script.replaceAll('stat -L', 'no-such-program')).stdout;
    await validateFrames({ frames, validator, open });
    expect(validator).toMatchObject({ checked: 2, bad: 1, first: { width: 64 } });
  });

  it('checks 2,000 frames', async () => {
    const [frame = ''] = await drawFrames({ folder: join(temp.path, 'many'), count: 1 });
    const images = Array.from({ length: 2000 }, () => frame);
    const { validator } = await validate(images);
    expect(validator).toMatchObject({ checked: 2000, ok: true });
  });
});
