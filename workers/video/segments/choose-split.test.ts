import { expect, it } from 'vitest';
import { chooseSplit } from './choose-split.ts';

it.each([
  [{ start: 0, until: 1_000, sure: 100, done: 90 }, 25, 550],
  // A key frame begins each segment, counted from the beginning of the video.
  [{ start: 550, until: 1_000, sure: 560, done: 0 }, 24, 792],
  // Nothing is taken that may be read already.
  [{ start: 0, until: 1_000, sure: 980, done: 100 }, 25, undefined],
  [{ start: 0, until: 1_000, sure: 1_000, done: 900 }, 25, undefined],
  [{ start: 0, until: 30, sure: 0, done: 0 }, 25, 25],
  [{ start: 0, until: 25, sure: 0, done: 0 }, 25, undefined],
  // What is lost with a helper is limited.
  [{ start: 0, until: 100_000, sure: 16, done: 1 }, 25, 97_000],
])('of %j, with a key frame every %i, the rest begins at %s', (frames, keyEvery, split) => {
  expect(chooseSplit(frames, keyEvery)).toBe(split);
});
