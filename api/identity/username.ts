import { z } from 'zod';

export const username = z
  .string()
  .regex(/^\w[\w.@-]{0,63}$/, 'must be 1 to 64 letters, digits, . _ @ -, and begin with no sign');
