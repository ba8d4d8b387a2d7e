import { z } from 'zod';

/** A path on a host. */
export const absolutePath = z
  .string()
  .max(4096)
  .regex(/^\//, 'must be an absolute path')
  .refine(path => !path.includes('\0'), 'must not hold a NUL character')
  .refine(path => !/\p{Surrogate}/u.test(path), 'must be well-formed Unicode');
