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
    expect(validator).toMatchObject({ checked: 5, bad: 3, ok: false });
    expect(validator.needsWorker).toBe('/4 is TIFF, and a host takes JPEG and PNG');
    expect(validator.problems).toEqual([
      { index: 0, path: '/0', reason: 'is missing' },
      { index: 2, path: '/2', reason: 'is of another size: 5×2 pixels, the first is 4×2' },
      { index: 3, path: '/3', reason: 'is of another kind: EXR, the first is PNG' },
    ]);
  });

  it('says which frame a host cannot take, and why', () => {
    const needs = (...infos: FrameInfo[]) => check(...infos).needsWorker;
    const alpha = { ...png, alpha: true } as const;
    expect(needs(png, png)).toBeUndefined();
    expect(needs(alpha, png, { ...png, palette: true })).toBeUndefined();
    expect(check(png, { ...png, kind: 'jpeg' }).ok).toBe(true);
    for (const [infos, reason] of [
      [[png, { ...png, palette: true }], '/1 has a palette, the first has none'],
      [[png, png, alpha, { ...png, palette: true }], '/2 may be transparent, the first is not'],
      [[png, { ...png, kind: 'jpeg' }], '/1 is of another kind: JPEG, the first is PNG'],
      [[{ kind: 'other', format: 'jpeg' }], '/0 is a JPEG of CMYK colours or another unusual form'],
      [[png, { kind: 'other', format: 'tiff' }], '/1 is TIFF, and a host takes JPEG and PNG'],
      [[{ ...png, kind: 'exr' }], '/0 is EXR, and a host takes JPEG and PNG'],
      [
        [{ ...alpha, width: 5_000, height: 5_000 }],
        '/0 may be transparent, with more than 4096×4096 pixels',
      ],
    ] as const)
      expect(needs(...infos)).toBe(reason);
  });

  it('tells another size from another kind', () => {
    const exr = { ...png, kind: 'exr' } as const;
    const large = { kind: 'exr', width: 5_000, height: 5_000 } as const;
    expect(check(large, { ...exr, alpha: true }).problems).toMatchObject([
      { reason: 'is of another size: 4×2 pixels, the first is 5000×5000' },
    ]);
    expect(check({ ...png, kind: 'bmp' }, { ...png, kind: 'bmp', alpha: true }).problems).toEqual([
      { index: 1, path: '/1', reason: 'may be transparent, the first is not' },
    ]);
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
