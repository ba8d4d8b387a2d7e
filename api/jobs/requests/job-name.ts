import { z } from 'zod';

/** The client's own name of a job. */
export const jobName = z
  .string()
  .min(1)
  .max(200)
  .refine(name => !/[\p{Cc}\p{Surrogate}]/u.test(name), 'must be one line of Unicode')
  .optional()
  .describe("The job's name, for lists.");
