import { expect, test } from 'vitest';
import { HostOutput } from './host-output.ts';

const MIB = 1 << 20;

test('reads where the video is and how large, and tells of the progress between', () => {
  const told: [number, string][] = [];
  const output = new HostOutput(4, (...said) => told.push(said));
  output.take('stdout', Buffer.from('run=/home/Zoë/.windlass/runs/1\nframe=2\nprogress=conti'));
  output.take('stdout', Buffer.from('nue\ntotal_size=77\nframe=4\nprogress=end\n'));
  output.take('stdout', Buffer.from('stills=10 20\nsize=300\n'));
  expect(told).toEqual([
    [0.5, 'encoding: 2 of 4 frames'],
    [1, 'encoding: 4 of 4 frames'],
  ]);
  expect([output.directory, output.size, output.stills]).toEqual([
    '/home/Zoë/.windlass/runs/1',
    300,
    [10, 20],
  ]);
});

test('a host that prints without end fills no memory', () => {
  const output = new HostOutput(4, () => {});
  const piece = Buffer.from('total_size=77\n'.repeat(4_096));
  output.take('stdout', Buffer.from('run=/run\n'));
  const before = process.memoryUsage().heapUsed;
  for (let sent = 0; sent < 256 * MIB; sent += piece.length) output.take('stdout', piece);
  const grown = process.memoryUsage().heapUsed - before;
  output.take('stdout', Buffer.from('stills=10 20\nsize=300\n'));
  expect(grown).toBeLessThan(128 * MIB);
  expect([output.directory, output.size, output.stills]).toEqual(['/run', 300, [10, 20]]);
});
