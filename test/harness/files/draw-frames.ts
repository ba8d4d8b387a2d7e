import { mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import type { ReadFrame } from '../../../workers/video/read-frames.ts';

export type DrawnKind = 'png' | 'jpeg' | 'tiff' | 'webp' | 'gif';

export interface DrawFramesOptions {
  folder: string;
  count: number;
  width?: number;
  height?: number;
  kind?: DrawnKind;
}

/** Writes pictures with a moving shape, whose names do not tell their kind; returns their paths in order. */
export async function drawFrames(options: DrawFramesOptions): Promise<string[]> {
  const { folder, count, width = 64, height = 48, kind = 'png' } = options;
  mkdirSync(folder, { recursive: true });
  const paths = Array.from({ length: count }, (_, i) => join(folder, `frame ${i}.dat`));
  for (const [i, path] of paths.entries()) {
    await writeFile(path, await drawFrame({ width, height, kind, hue: (i * 37) % 360 }));
  }
  return paths;
}

export function drawFrame(options: {
  width: number;
  height: number;
  kind: DrawnKind;
  hue?: number;
}): Promise<Buffer> {
  const { width, height, kind, hue = 0 } = options;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
    <rect width="100%" height="100%" fill="hsl(${hue},70%,50%)"/>
    <circle cx="${(hue / 360) * width}" cy="50%" r="20%" fill="white"/></svg>`;
  return sharp(Buffer.from(svg)).toFormat(kind).toBuffer();
}

/** A JPEG of slopes and noise, of which a lost part leaves codes that cannot be. */
export function drawBusyJpeg(): Promise<Buffer> {
  const raw = { width: 256, height: 256, channels: 3 } as const;
  const slopes = Array.from({ length: 3 * 256 * 256 }, (_, i) => (i >> 10) + ((i * i) % 23));
  return sharp(Buffer.from(slopes), { raw }).jpeg({ quality: 85 }).toBuffer();
}

/** Paths as frames of a list. */
export const placesOf = (paths: readonly string[]) => paths.map((path, index) => ({ index, path }));

/** Local files as frames, as readFrames() yields those of a host. */
export async function* readLocalFrames(paths: readonly string[]): AsyncGenerator<ReadFrame> {
  for (const [index, path] of paths.entries()) {
    const bytes = await readFile(path);
    yield { index, path, size: bytes.length, bytes };
  }
}
