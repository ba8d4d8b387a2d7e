import { desc, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, type ModelRow, uploads } from '../../shared/database/schema.ts';
import { entityTag } from '../http/records.ts';

/** The newest ones that a model's record shows. */
const MOST = 200;

/** What became of an upload of the model, for everyone who can read the model; the upload itself is its owner's. */
export const parseRecord = z.object({
  aids: z.array(z.string()),
  parser: z.string(),
  state: z.enum(['parsing', 'done', 'failed']),
  error: z
    .object({ message: z.string(), errors: z.array(z.unknown()) })
    .optional()
    .describe('Where it failed: `errors` names file, row, column and reason.'),
  finished: z.date().optional(),
});
export type ParseRecord = z.output<typeof parseRecord>;

/** Its parses, the newest first. */
export async function readParses(db: Tx, mid: string): Promise<ParseRecord[]> {
  const rows = await db
    .select({
      aids: uploads.aids,
      parser: uploads.parser,
      state: jobs.state,
      error: jobs.error,
      finished: jobs.finished,
    })
    .from(uploads)
    .innerJoin(jobs, eq(jobs.id, uploads.job))
    .where(eq(uploads.model, mid))
    .orderBy(desc(uploads.uid))
    .limit(MOST);
  return rows.map(({ aids, parser, state, error, finished }) => ({
    aids,
    parser,
    state: finished === null ? 'parsing' : state === 'succeeded' ? 'done' : 'failed',
    ...(error ? { error: explain(error) } : {}),
    ...(finished ? { finished } : {}),
  }));
}

function explain(error: unknown): NonNullable<ParseRecord['error']> {
  const { detail = '', errors } = error as { detail?: string; errors?: unknown };
  return { message: detail, errors: Array.isArray(errors) ? errors : [] };
}

/** The model's validator: its version, and how its parses stand, which may end where no worker bumps the version. */
export function modelTag(model: ModelRow, parses: ParseRecord[]): string {
  const standing = parses.map(({ state, finished }) => [state, finished]);
  return entityTag({ version: model.version, standing });
}
