import { z } from 'zod';

/** One line of text: what people and clients call things. */
export const nameText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine(isOneLine, 'must be well-formed Unicode without control characters');

/** Text of several lines. */
export const longText = (max: number) =>
  z
    .string()
    .max(max)
    .refine(
      text => !/[\0\p{Surrogate}]/u.test(text),
      'must be well-formed Unicode without NUL characters',
    );

/** No control characters (C0, DEL, C1) and no half of a surrogate pair. */
export function isOneLine(text: string): boolean {
  return !/[\p{Cc}\p{Surrogate}]/u.test(text);
}
