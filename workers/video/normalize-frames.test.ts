import { expect, test } from 'vitest';
import { drawFrame } from '../../test/harness/files/draw-frames.ts';
import { FrameValidator } from './frame-validator.ts';
import { judgeFrame, readInfo } from './normalize-frames.ts';

test('whole frames are not measured by a damaged one before them', async () => {
  const large = await drawFrame({ width: 66, height: 48, kind: 'png' });
  const whole = await drawFrame({ width: 64, height: 48, kind: 'png' });
  const cut = large.subarray(0, large.length / 2);
  const validator = new FrameValidator();
  for (const [index, bytes] of [cut, whole, whole].entries())
    judgeFrame(readInfo({ index, path: `/${index}`, size: bytes.length, bytes }), validator);
  expect(validator.problems).toEqual([
    { index: 0, path: '/0', reason: expect.stringContaining('is cut short') },
  ]);
  expect(validator).toMatchObject({ checked: 3, size: { width: 64, height: 48 } });
});
