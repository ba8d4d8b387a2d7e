import { expect, test } from 'vitest';
import { formatTime, frameFrom, timeOf } from './frames.ts';
import { suggestKey } from './suggest-key.ts';
import { placeTile } from './tiles.ts';

test('the time at which a frame begins leads to it, as files round it', () => {
  for (const [frames, fps] of [
    [250, 25],
    [7, 0.1],
    [3_600, 119.88],
  ] as const) {
    const timing = { frames, duration: frames / fps };
    for (let frame = 0; frame < frames; frame++) {
      expect(frameFrom(Math.floor((frame / fps) * 1e6) / 1e6, timing)).toBe(frame);
      expect(frameFrom(Math.round((frame / fps) * 1e3) / 1e3, timing)).toBe(frame);
      expect(Math.floor((timeOf(frame, timing) * frames) / timing.duration)).toBe(frame);
    }
  }
  const timing = { frames: 10, duration: 1 };
  expect([frameFrom(5, timing), frameFrom(-1, timing), timeOf(99, timing)]).toEqual([9, 0, 0.95]);
});

test('times are told in minutes and hundredths', () => {
  expect([0, 0.04, 62.5, 59.999, 3_600].map(formatTime)).toEqual([
    ...['0:00.00', '0:00.04', '1:02.50', '1:00.00', '60:00.00'],
  ]);
});

test('the small picture of a time lies in its row', () => {
  const tiles = { count: 12, columns: 10, width: 160, height: 90, every: 2, duration: 23 };
  expect(placeTile(tiles, 1.99)).toEqual({ x: 0, y: 0 });
  expect(placeTile(tiles, 2)).toEqual({ x: 160, y: 0 });
  expect(placeTile(tiles, 21)).toEqual({ x: 0, y: 90 });
  expect(placeTile(tiles, 99)).toEqual({ x: 160, y: 90 });
});

test('no two videos have the same key suggested: the one would remove the other', () => {
  const at = (time: string) => suggestKey('frames-run 1/', new Date(time));
  expect(at('2026-11-28T00:47:09.120Z')).toBe('frames-run-1-2026-11-28-004709');
  expect(at('2026-11-28T00:47:10.120Z')).not.toBe(at('2026-11-28T00:47:09.120Z'));
  expect(suggestKey('../', new Date(0))).toBe('video-1970-01-01-000000');
});
