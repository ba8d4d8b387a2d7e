import type { z } from 'zod';

export interface Setting {
  schema: z.ZodType<unknown, string | undefined>;
  /** Applies when the variable is absent or empty. */
  default?: string;
  meaning: string;
}
