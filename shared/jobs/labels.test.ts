import { expect, test } from 'vitest';
import { labelOf, oneLine } from './labels.ts';

test('a label is the first line that says something', () => {
  expect(labelOf('command', { command: '\n  \n\tcd /data\u0007 && make\nrm -r x' })).toBe(
    'cd /data  && make',
  );
  expect(labelOf('batch', { script: '#!/bin/sh\n#SBATCH -n 2\n\nsrun a\n' })).toBe('srun a');
  expect(labelOf('connect', {})).toBeNull();
});

test('a label is cut between characters', () => {
  expect(oneLine('😀'.repeat(300))).toBe('😀'.repeat(200));
  // Half of a pair, where the text itself was cut.
  expect(oneLine(`${' '.repeat(1_999)}😀`)).toBe('\ufffd');
});

test('a video is told by its frames', () => {
  const video = { type: 'video/mp4', fps: 25 } as const;
  expect(labelOf('video', { ...video, images: ['/a.png'] })).toBe('1 frame, video/mp4');
  expect(labelOf('video', { ...video, images: ['/a.png', '/b.png'] })).toBe('2 frames, video/mp4');
  expect(labelOf('video', { ...video, pattern: '/a/%05d.png' })).toBe('/a/%05d.png, video/mp4');
});
