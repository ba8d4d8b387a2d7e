/** A number in the names of frames, or `*`: what stands around it. */
export type FramePattern =
  | { before: string; after: string; width: number; fill: '0' | ' ' }
  | { parts: string[] };

const NUMBER = /%(0?)(\d{0,2})d/g;

/** Whether its path has no other sign than those of its frames, not even one that is none. */
export function hasOnlyItsSigns(path: string): boolean {
  const numbers = path.match(NUMBER) ?? [];
  return numbers.length === (path.includes('*') ? 0 : 1);
}

/**
 * The signs of a path: one `%d`, perhaps with a width, or one or more `*`. Where the name of the file has some, a `%d` of
 * its folder is none, as in `50%damping`. Undefined where there is not one number, nor `*` alone.
 */
export function readFramePattern(path: string): FramePattern | undefined {
  const slash = path.lastIndexOf('/') + 1;
  const all = [...path.matchAll(NUMBER)];
  const ofName = all.filter(({ index }) => index >= slash);
  const isInName = ofName.length > 0 || path.includes('*', slash);
  const numbers = isInName ? ofName : all;
  if (path.includes('*')) return numbers.length === 0 ? { parts: path.split('*') } : undefined;
  const [number] = numbers;
  if (!number || numbers.length > 1) return undefined;
  const [sign, zero, width] = number;
  return {
    before: path.slice(0, number.index),
    after: path.slice(number.index + sign.length),
    width: Number(width),
    fill: zero ? '0' : ' ',
  };
}
