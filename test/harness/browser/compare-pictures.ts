import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import sharp from 'sharp';
import { expect } from 'vitest';
import type { SkipReason } from '../skip.ts';

/** Both pictures are shrunk to this many cells, so that other digits and edges of letters hardly count. */
const CELLS = { width: 320, height: 200 };
/** The difference of a channel of a cell, of 255, that is noticeable. */
const NOTICEABLE = 40;
/** The part of all cells that may differ. Other times and ids on a page are up to 0.0033 of them; two pages with a short table each differ by 0.0076. */
const TOLERATED = 0.005;

const FONT = 'DejaVu Sans';

/** Undefined where pages have the font that they have in the pictures. */
export function missingFont(): SkipReason | undefined {
  const { stdout } = spawnSync('fc-match', ['system-ui', 'family'], { encoding: 'utf8' });
  if (stdout?.trim() === FONT) return undefined;
  return { reason: `needs ${FONT} as the font of the system`, obtainable: false };
}

/** Set to write what is seen instead of comparing it. */
const isWriting = process.env.WRITE_PICTURES !== undefined;

const shrink = (picture: Buffer | string) =>
  sharp(picture)
    .removeAlpha()
    .toColourspace('srgb')
    .resize({ ...CELLS, fit: 'fill' })
    .raw()
    .toBuffer();

/** The part of the cells, from 0 to 1, in which two pictures differ for whoever looks at them. */
export async function differenceOf(one: Buffer | string, other: Buffer | string): Promise<number> {
  const [a, b] = await Promise.all([shrink(one), shrink(other)]);
  const cells = CELLS.width * CELLS.height;
  let differing = 0;
  for (let cell = 0; cell < cells; cell++) {
    const channels = [3 * cell, 3 * cell + 1, 3 * cell + 2];
    if (channels.some(at => Math.abs((a[at] ?? 0) - (b[at] ?? 0)) > NOTICEABLE)) differing++;
  }
  return differing / cells;
}

/** Holds a screenshot (PNG) against the picture of that path, or writes that with WRITE_PICTURES set. */
export async function expectPicture(screenshot: Buffer, path: string): Promise<void> {
  if (isWriting) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, await sharp(screenshot).webp({ quality: 82, effort: 6 }).toBuffer());
    return;
  }
  expect(existsSync(path), `${path} is not there: write it with WRITE_PICTURES=1`).toBe(true);
  const difference = await differenceOf(screenshot, path);
  if (difference > TOLERATED) {
    const seen = join(tmpdir(), basename(path).replace(/webp$/, 'png'));
    writeFileSync(seen, screenshot);
    expect.fail(
      `${(100 * difference).toFixed(1)} % of ${path} differ from ${seen}. If that is meant, write it with WRITE_PICTURES=1.`,
    );
  }
}
