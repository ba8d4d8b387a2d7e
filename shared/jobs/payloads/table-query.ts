import { z } from 'zod';

/** One condition on a table's rows; `null` asks whether the value is missing ("true") or not ("false"). */
export const tableFilter = z.object({
  column: z.string(),
  op: z.enum(['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'null']),
  value: z.string(),
});
export type TableFilter = z.output<typeof tableFilter>;

/** The most groups of a view. */
export const MAX_GROUPS = 10_000;

/** Rows with equal values in the columns `by` are one group. `count` without a column counts rows. */
export const tableGroups = z.object({
  by: z.array(z.string()),
  aggregates: z.array(
    z.object({
      op: z.enum(['count', 'sum', 'mean', 'min', 'max']),
      column: z.string().optional(),
    }),
  ),
});
export type TableGroups = z.output<typeof tableGroups>;
