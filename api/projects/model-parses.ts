import { desc, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { type JobRow, jobs, type ModelRow, uploads } from '../../shared/database/schema.ts';
import { entityTag } from '../http/conditional-requests.ts';

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
type ParseRecord = z.output<typeof parseRecord>;

/** How a parse stands: all that the validator of its model's record is made of. */
type Standing = Pick<ParseRecord, 'state' | 'finished'>;

/** The uploads of a model that are parsed or have been, the newest first. */
const ofModel = (mid: string) => eq(uploads.model, mid);
const isItsParse = eq(jobs.id, uploads.job);

export async function readParseStates(db: Tx, mid: string): Promise<Standing[]> {
  const rows = await db
    .select({ state: jobs.state, finished: jobs.finished })
    .from(uploads)
    .innerJoin(jobs, isItsParse)
    .where(ofModel(mid))
    .orderBy(desc(uploads.uid))
    .limit(MOST);
  return rows.map(standingOf);
}

/** Bytes of what each of them tells. */
export async function readParseSizes(db: Tx, mid: string): Promise<number[]> {
  const rows = await db
    .select({
      bytes: sql<number>`octet_length(array_to_string(${uploads.aids}, ',,,')) + coalesce(octet_length(${jobs.error}::text), 0)`,
    })
    .from(uploads)
    .innerJoin(jobs, isItsParse)
    .where(ofModel(mid))
    .orderBy(desc(uploads.uid))
    .limit(MOST);
  return rows.map(row => row.bytes);
}

/** So many of them. */
export async function readParses(db: Tx, mid: string, count: number): Promise<ParseRecord[]> {
  const rows = await db
    .select({
      aids: uploads.aids,
      parser: uploads.parser,
      state: jobs.state,
      error: jobs.error,
      finished: jobs.finished,
    })
    .from(uploads)
    .innerJoin(jobs, isItsParse)
    .where(ofModel(mid))
    .orderBy(desc(uploads.uid))
    .limit(count);
  return rows.map(({ aids, parser, error, ...row }) => ({
    aids,
    parser,
    ...standingOf(row),
    ...(error ? { error: explain(error) } : {}),
  }));
}

function standingOf({ state, finished }: Pick<JobRow, 'state' | 'finished'>): Standing {
  if (finished === null) return { state: 'parsing' };
  return { state: state === 'succeeded' ? 'done' : 'failed', finished };
}

function explain(error: unknown): NonNullable<ParseRecord['error']> {
  const { detail = '', errors } = error as { detail?: string; errors?: unknown };
  return { message: detail, errors: Array.isArray(errors) ? errors : [] };
}

/** The model's validator: its version, and how its parses stand, which may end where no worker bumps the version. */
export function modelTag(model: ModelRow, parses: Standing[]): string {
  const standing = parses.map(({ state, finished }) => [state, finished]);
  return entityTag({ version: model.version, standing });
}
