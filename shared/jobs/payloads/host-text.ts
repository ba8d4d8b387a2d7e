import { z } from 'zod';

interface Limits {
  /** Characters. */
  max?: number;
  /** Bytes in UTF-8, and what is said of more. */
  bytes?: { most: number; problem: string };
}

/**
 * Text that is sent to a host, where a NUL character would end it; PostgreSQL stores no half of a character. What is too
 * long is checked for nothing else: zod goes on after a problem unless that aborts.
 */
export const hostText = ({ max, bytes }: Limits = {}) => {
  const text = max === undefined ? z.string() : z.string().max(max, { abort: true });
  const limited = bytes
    ? text.refine(given => Buffer.byteLength(given) <= bytes.most, {
        error: bytes.problem,
        abort: true,
      })
    : text;
  return limited
    .refine(given => !given.includes('\0'), 'must not hold a NUL character')
    .refine(given => !/\p{Surrogate}/u.test(given), 'must be well-formed Unicode');
};
