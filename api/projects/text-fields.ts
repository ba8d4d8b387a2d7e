import { z } from 'zod';

const ONE_LINE = /^[^\p{Cc}\p{Surrogate}]*$/u;

/** One line of text, for names. `max` is LIMIT_NAME_LENGTH. */
export const nameText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max, `must have at most ${max} characters (LIMIT_NAME_LENGTH)`)
    .regex(ONE_LINE, 'must be well-formed Unicode without control characters');

/** Text of several lines. */
export const longText = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[^\0\p{Surrogate}]*$/u, 'must be well-formed Unicode without NUL characters');

/** No control characters (C0, DEL, C1) and no half of a surrogate pair. */
export function isOneLine(text: string): boolean {
  return ONE_LINE.test(text);
}
