import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBundledFfmpeg } from '../../shared/process/bundled-ffmpeg.ts';
import {
  type DrawnKind,
  drawFrame,
  drawFrames,
  placesOf,
  readLocalFrames,
} from '../../test/harness/files/draw-frames.ts';
import { readLabels } from '../../test/harness/files/read-labels.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { giveToDecoder } from '../sandbox/scratch-dir.ts';
import { encodeVideo } from './encode-video.ts';
import { drawLabel, type LabelKind, labelScript, planLabels } from './frame-labels.ts';
import { hostEncodeScript } from './host-encode-script.ts';
import { CHARACTERS } from './label-font.ts';

const temp = makeTempDir('labels');
beforeAll(() => giveToDecoder(temp.path));
afterAll(() => temp.remove());
const at = (name: string) => join(temp.path, name);
const SIZE = { width: 320, height: 240 };
/** What filter languages, shells and awk would take for theirs. */
const HOSTILE = ["a':text=%{pts}", 'b,drawbox=c=red[x];[x]', '$(id) `id` \\n\\', '"; system("id")'];

let made = 0;
async function encode(paths: string[], label: LabelKind, ffmpeg?: string): Promise<string> {
  const outputPath = at(`worker-${made++}`);
  const frames = readLocalFrames(paths);
  const labelsFor = (size: { width: number; height: number }) =>
    planLabels(label, placesOf(paths), size);
  const given = { type: 'video/mp4', quality: 1, limits: AMPLE, ffmpeg, labelsFor } as const;
  await encodeVideo({ frames, total: paths.length, outputPath, ...given });
  return outputPath;
}

function encodeOnHost(images: string[], label: LabelKind, ffmpeg = 'ffmpeg'): string {
  const run = at(`host-${made++}`);
  mkdirSync(run);
  const labels = planLabels(label, placesOf(images), SIZE);
  const pictures = { kind: 'png', ...SIZE } as const;
  const given = { type: 'video/mp4', quality: 1, limits: AMPLE, pictures, ffmpeg } as const;
  writeFileSync(join(run, 'script'), hostEncodeScript({ ...given, images, labels }));
  execFileSync('sh', [join(run, 'script')], { env: { ...process.env, WINDLASS_RUN: run } });
  return join(run, 'video');
}

/** Frames whose files are called so, and how. */
async function drawNamed(folder: string, names: readonly string[], kind: DrawnKind = 'png') {
  const paths = await drawFrames({ folder: at(folder), count: names.length, ...SIZE, kind });
  return paths.map((path, i) => {
    const named = join(at(folder), names[i] ?? '');
    renameSync(path, named);
    return named;
  });
}

describe('labels', () => {
  it('are the index or the name of each frame, in both places, with an ffmpeg of 2018 too', async () => {
    const names = [...HOSTILE, 'ünï \u{1f600}', 'plain.png'];
    const shown = [...HOSTILE, '\\u{fc}n\\u{ef} \\u{1f600}', 'plain.png'];
    const paths = await drawNamed('hostile', names);
    const length = Math.max(...shown.map(text => text.length));
    const bundled = await findBundledFfmpeg();
    for (const ffmpeg of ['ffmpeg', bundled]) {
      for (const video of [
        await encode(paths, 'name', ffmpeg),
        encodeOnHost(paths, 'name', ffmpeg),
      ]) {
        const labels = await readLabels(video, { length });
        expect(labels.map(label => label.trimEnd())).toEqual(shown);
      }
    }
    for (const video of [await encode(paths, 'frame'), encodeOnHost(paths, 'frame')])
      expect(await readLabels(video, { length: 1 })).toEqual(['0', '1', '2', '3', '4', '5']);
  });

  it('are drawn into frames that are decoded first', async () => {
    for (const kinds of [
      ['tiff', 'webp', 'png'],
      ['jpeg', 'gif', 'png'],
    ] as const) {
      const paths = await drawNamed(`kinds-${kinds[0]}`, kinds, kinds[0]);
      for (const [i, kind] of kinds.entries())
        writeFileSync(paths[i] ?? '', await drawFrame({ ...SIZE, kind }));
      expect(await readLabels(await encode(paths, 'name'), { length: 4 })).toEqual(
        kinds.map(kind => kind.padEnd(4)),
      );
    }
  });

  it('hold every character that can be drawn, in both places alike', () => {
    const lines = ['a', 'b'].map((_, i) => CHARACTERS.slice(i, 94 + i).join(''));
    for (const shell of ['bash', 'dash', 'ksh', 'zsh', 'busybox sh']) {
      const [program = '', ...words] = shell.split(' ');
      const script = `LC_ALL=C; export LC_ALL\n${labelScript({ lines, size: { width: 1, height: 1 }, scale: 1 })}`;
      const printed = execFileSync(program, [...words, '-c', script]);
      expect(printed.equals(Buffer.concat(lines.map(drawLabel))), shell).toBe(true);
    }
  });

  it('fit into the frame, and keep the end of what does not', () => {
    const frames = placesOf(['/frames/a-very-long-name-of-a-frame-0001.png', '/b']);
    const plan = (width: number, height = 48) => planLabels('name', frames, { width, height });
    expect(plan(61).lines).toEqual(['..0001.png', 'b         ']);
    expect(plan(2).lines).toEqual(['g', 'b']);
    expect(plan(1280, 720)).toMatchObject({ scale: 3, size: { width: 10, height: 217 } });
    expect(planLabels('name', [{ index: 0, path: '/x/\udcff\n' }], SIZE).lines).toEqual([
      '\\xff\\u{a}',
    ]);
  });
});
