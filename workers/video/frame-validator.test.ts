import { describe, expect, it } from 'vitest';
import type { WindlassError } from '../../shared/errors.ts';
import { FrameValidator } from './frame-validator.ts';

describe('FrameValidator', () => {
  const png = { kind: 'png', width: 4, height: 2 } as const;

  it('reports other sizes and other kinds, and keeps the first good frame', () => {
    const validator = new FrameValidator();
    validator.add('/gone', { problem: 'is missing' });
    validator.add('/0', png);
    validator.add('/1', { ...png, width: 5 });
    validator.add('/2', { ...png, kind: 'jpeg' });
    validator.add('/3', { kind: 'other', format: 'tiff' });
    expect(validator.first).toEqual(png);
    expect(validator).toMatchObject({ checked: 5, bad: 4, ok: false, needsDecode: true });
    expect(validator.problems).toEqual([
      { path: '/gone', reason: 'is missing' },
      { path: '/1', reason: 'is of another size: 5×2 pixels, the first is 4×2' },
      { path: '/2', reason: 'is of another kind: JPEG, the first is PNG' },
      { path: '/3', reason: 'is of another kind: TIFF, the first is PNG' },
    ]);
  });

  it('allows mixed kinds where they are decoded, but not sizes', () => {
    const validator = new FrameValidator({ mixed: true });
    expect(validator.add('/0', png)).toBe(true);
    expect(validator.add('/1', { ...png, kind: 'jpeg' })).toBe(true);
    expect(validator.add('/2', { kind: 'other', format: 'tiff' })).toBe(true);
    expect(validator.addSize('/2', { width: 9, height: 9 })).toBe(false);
    expect(validator).toMatchObject({ checked: 3, bad: 1, needsDecode: true });
  });

  it('lists twenty and counts all', () => {
    const validator = new FrameValidator();
    for (let i = 0; i < 100; i++) validator.add(`/bad\n${i}`, { problem: 'is missing' });
    const error = validator.toError();
    expect(error).toMatchObject({
      code: 'bad_frames',
      extra: { count: 100 },
    } satisfies Partial<WindlassError>);
    expect(error.extra.frames).toHaveLength(20);
    expect(error.message).toBe(
      'Frames cannot be used: /bad\\n0 is missing; /bad\\n1 is missing; /bad\\n2 is missing; and 97 more.',
    );
    expect(() => validator.assertUsable()).toThrow(error.message);
  });
});
