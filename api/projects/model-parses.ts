import { and, desc, eq, isNotNull, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import {
  type JobRow,
  jobs,
  type ModelRow,
  type ParseEnd,
  uploads,
} from '../../shared/database/schema.ts';
import type { StoredError } from '../../shared/errors/errors.ts';
import { entityTag } from '../http/conditional-requests.ts';
import { skippedRows } from '../uploads/upload-record.ts';

/** Limit on the parses in a model's record, which shows the newest. */
const MAX_PARSES = 200;

/** The parse of an upload, visible to everyone who can read the model; the upload itself is visible to its owner only. */
export const parseRecord = z
  .object({
    aids: z.array(z.string()),
    parser: z.string(),
    state: z.enum(['parsing', 'done', 'failed']),
    error: z
      .object({ message: z.string(), errors: z.array(z.unknown()) })
      .meta({ id: 'ParseError', description: '`errors` names file, row, column and reason.' })
      .optional(),
    skipped: skippedRows.optional(),
    finished: z.date().optional(),
  })
  .meta({ id: 'Parse' });
type ParseRecord = z.output<typeof parseRecord>;

/** The part of a parse that the validator of its model's record depends on. */
type ParseState = Pick<ParseRecord, 'state' | 'finished'>;

/** Uploads of the model that are parsed; joined with their parses, as far as these have a record. */
const ofModel = (mid: string) => and(eq(uploads.model, mid), isNotNull(uploads.job));
const isItsParse = eq(jobs.id, uploads.job);
const parseError = sql`coalesce(${jobs.error}, nullif(${uploads.parseEnd} -> 'error', 'null'))`;
/** Columns that tell how the parse goes: of the job, or what stays of it when its record is removed. */
const stateColumns = {
  job: { state: jobs.state, finished: jobs.finished },
  end: sql<Pick<ParseEnd, 'state' | 'finished'> | null>`${uploads.parseEnd} - 'error'`,
};

export async function readParseStates(db: Tx, mid: string): Promise<ParseState[]> {
  const rows = await db
    .select(stateColumns)
    .from(uploads)
    .leftJoin(jobs, isItsParse)
    .where(ofModel(mid))
    .orderBy(desc(uploads.uid))
    .limit(MAX_PARSES);
  return rows.map(parseStateOf);
}

/** The size in bytes of each parse's names, error and skipped rows. */
export async function readParseSizes(db: Tx, mid: string): Promise<number[]> {
  const rows = await db
    .select({
      bytes: sql<number>`octet_length(array_to_string(${uploads.aids}, ',,,')) + coalesce(octet_length(${parseError}::text), 0) + coalesce(octet_length(${uploads.skipped}::text), 0)`,
    })
    .from(uploads)
    .leftJoin(jobs, isItsParse)
    .where(ofModel(mid))
    .orderBy(desc(uploads.uid))
    .limit(MAX_PARSES);
  return rows.map(row => row.bytes);
}

/** The newest `count` parses. */
export async function readParses(db: Tx, mid: string, count: number): Promise<ParseRecord[]> {
  const rows = await db
    .select({
      aids: uploads.aids,
      parser: uploads.parser,
      error: sql<StoredError | null>`${parseError}`,
      skipped: uploads.skipped,
      ...stateColumns,
    })
    .from(uploads)
    .leftJoin(jobs, isItsParse)
    .where(ofModel(mid))
    .orderBy(desc(uploads.uid))
    .limit(count);
  return rows.map(({ aids, parser, error, skipped, ...row }) => ({
    aids,
    parser,
    ...parseStateOf(row),
    ...(error ? { error: explain(error) } : {}),
    ...(skipped ? { skipped } : {}),
  }));
}

interface StateFound {
  job: Pick<JobRow, 'state' | 'finished'> | null;
  end: Pick<ParseEnd, 'state' | 'finished'> | null;
}

function parseStateOf({ job, end }: StateFound): ParseState {
  const finished = end ? new Date(end.finished) : job?.finished;
  if (!finished) return { state: 'parsing' };
  return { state: (end ?? job)?.state === 'succeeded' ? 'done' : 'failed', finished };
}

function explain({ detail, errors }: StoredError): NonNullable<ParseRecord['error']> {
  return { message: detail, errors: Array.isArray(errors) ? errors : [] };
}

/** The model's validator: its version and the states of its parses, which may end without a change of the version. */
export function modelTag(model: ModelRow, parses: ParseState[]): string {
  const states = parses.map(({ state, finished }) => [state, finished]);
  return entityTag({ version: model.version, states });
}
