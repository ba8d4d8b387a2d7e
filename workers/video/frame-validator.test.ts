import { describe, expect, it } from 'vitest';
import type { WindlassError } from '../../shared/errors/errors.ts';
import type { FrameInfo } from './frame-info.ts';
import { FrameValidator } from './frame-validator.ts';

const png = { kind: 'png', width: 4, height: 2 } as const;

/** Checks these as the frames /0, /1 and so on. */
function check(...infos: (FrameInfo | { problem: string })[]): FrameValidator {
  const validator = new FrameValidator();
  for (const [index, info] of infos.entries()) validator.add({ index, path: `/${index}` }, info);
  return validator;
}

describe('FrameValidator', () => {
  it('names what does not go with the first good frame', () => {
    const validator = check(
      { problem: 'is missing' },
      png,
      { ...png, width: 5 },
      { ...png, kind: 'exr' },
      { kind: 'other', format: 'tiff' },
    );
    expect(validator.first).toEqual(png);
    expect(validator).toMatchObject({ checked: 5, bad: 3, ok: false, needsDecode: true });
    expect(validator.problems).toEqual([
      { index: 0, path: '/0', reason: 'is missing' },
      { index: 2, path: '/2', reason: 'is of another size: 5×2 pixels, the first is 4×2' },
      { index: 3, path: '/3', reason: 'is of another kind: EXR, the first is PNG' },
    ]);
  });

  it('finds what must be decoded because its colours need more than the first', () => {
    expect(check(png, { ...png, alpha: true }).needsDecode).toBe(true);
    expect(check(png, { ...png, palette: true }).needsDecode).toBe(true);
    expect(check({ ...png, alpha: true }, png, { ...png, palette: true }).needsDecode).toBe(false);
    expect(check(png, { ...png, kind: 'jpeg' })).toMatchObject({ ok: true, needsDecode: true });
  });

  it('checks the size of what was decoded later, and says one reason a frame', () => {
    const validator = check(png, { kind: 'other', format: 'tiff' });
    const frame = { index: 1, path: '/1' };
    expect(validator.addSize(frame, { width: 9, height: 9 })).toBe(false);
    validator.addProblem(frame, 'is something else');
    expect(validator).toMatchObject({ checked: 2, bad: 1 });
    expect([validator.isBad(0), validator.isBad(1)]).toEqual([false, true]);
  });

  it('names the first frame where most differ from it', () => {
    const odd = { ...png, width: 8 };
    const validator = check({ problem: 'is missing' }, odd, png, png);
    expect(() => validator.assertTypical()).toThrow('/1 has 8×2 pixels, and 2 of 4 frames differ');
    expect(() => check({ ...png, kind: 'exr' }, png, png).assertTypical()).toThrow('/0 has 4×2');
    for (const usual of [check(odd, png), check(png, png, odd), check({ problem: 'is missing' })])
      expect(() => usual.assertTypical()).not.toThrow();
  });

  it('lists a hundred in the order of the list, and counts all', () => {
    const validator = new FrameValidator();
    for (let i = 149; i >= 0; i--)
      validator.add({ index: i, path: `/bad\n${i}\udcff` }, { problem: 'is missing' });
    const error = validator.toError();
    expect(error).toMatchObject({
      code: 'bad_frames',
      extra: { count: 150 },
    } satisfies Partial<WindlassError>);
    const { frames } = error.extra as { frames: unknown[] };
    expect(frames).toHaveLength(100);
    expect(frames.at(-1)).toEqual({ index: 99, path: '/bad\\n99\\xff', reason: 'is missing' });
    expect(error.message).toBe(
      'Frames cannot be used: /bad\\n0\\xff is missing; /bad\\n1\\xff is missing; /bad\\n2\\xff is missing; and 147 more.',
    );
    expect(() => validator.assertUsable()).toThrow(error.message);
  });
});

it('names a frame of more pixels than are allowed, whose size is not that of the others', () => {
  const validator = new FrameValidator(100);
  expect(validator.add({ index: 0, path: '/large' }, { kind: 'png', width: 11, height: 10 })).toBe(
    false,
  );
  expect(validator.add({ index: 1, path: '/fits' }, { kind: 'png', width: 10, height: 10 })).toBe(
    true,
  );
  expect(validator.problems).toEqual([
    { index: 0, path: '/large', reason: expect.stringContaining('at most 100') },
  ]);
});
