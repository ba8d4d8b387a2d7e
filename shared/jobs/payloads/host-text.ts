import { z } from 'zod';

/** Text that is sent to a host, where a NUL character would end it; PostgreSQL stores no half of a character. */
export const hostText = ({ max }: { max?: number } = {}) =>
  (max === undefined ? z.string() : z.string().max(max))
    .refine(text => !text.includes('\0'), 'must not hold a NUL character')
    .refine(text => !/\p{Surrogate}/u.test(text), 'must be well-formed Unicode');
