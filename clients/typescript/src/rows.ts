import { unwrap } from './api.ts';
import { sleep } from './backoff.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { ANSWER_MS } from './http.ts';
import { errorOfJob, waitForEnd } from './jobs.ts';
import type { Options } from './options.ts';
import { requireLimit, requireWhole } from './require-whole.ts';
import type { components, operations } from './schema.ts';
import { strongTag } from './strong-tag.ts';

type Query = Options<NonNullable<operations['readRows']['parameters']['query']>>;
export type RowsPage = components['schemas']['TableRows'];

export type Value = RowsPage['rows'][number][number];
export type Row = Record<string, Value>;

export interface RowsOptions extends Query {
  signal?: AbortSignal | undefined;
}

/** The most rows, columns and values of an answer. */
const PAGE = 10_000;
const COLUMNS = 2_500;
const VALUES = 1_000_000;

/** How many rows to request of a table with so many columns; few where their number is unknown. */
export const rowsOfAnswer = (columns = COLUMNS): number =>
  Math.min(PAGE, Math.floor(VALUES / columns));

/** How long to wait for a view that another user's job makes. */
const LOOK_AGAIN_MS = 500;

/**
 * Rows of a table, each by column names: from `offset` on, `limit` of them or all. Throws `changed` where another table
 * replaces it meanwhile.
 */
export async function* readRows(
  connection: Connection,
  table: { mid: string; aid: string },
  { signal, offset = 0, limit = Infinity, ...view }: RowsOptions,
): AsyncGenerator<Row> {
  requireWhole({ offset });
  requireLimit(limit);
  let tag: string | undefined;
  let most = rowsOfAnswer();
  for (let at = offset, end = offset + limit; at < end; ) {
    const query = { ...view, offset: at, limit: Math.min(most, end - at) };
    const page = await readPage(connection, table, { ...query, signal, tag });
    const { columns, rows, total } = page;
    tag = page.tag;
    most = rowsOfAnswer(columns.length);
    for (const row of rows)
      yield Object.fromEntries(columns.map((column, n) => [column, row[n] ?? null]));
    at += rows.length;
    end = Math.min(end, total);
  }
}

interface PageOptions extends RowsOptions {
  /** The tag of the page before: throws `changed` where that was of another table. */
  tag?: string | undefined;
}

/** A page of a view, once the view is there; `tag` names the table that it is of. */
export async function readPage(
  connection: Connection,
  path: { mid: string; aid: string },
  { signal, tag, ...query }: PageOptions,
): Promise<RowsPage & { tag: string | undefined }> {
  for (;;) {
    const asked = connection.api.GET('/api/models/{mid}/tables/{aid}/rows', {
      params: { path, query, header: { Prefer: 'wait=25', 'If-Match': tag } },
      signal,
      timeoutMs: ANSWER_MS,
    });
    const answer = await unwrap(asked).catch(error => {
      throw error instanceof WindlassError && error.status === 412 ? changed(path.aid) : error;
    });
    if ('rows' in answer)
      return { ...answer, tag: strongTag((await asked).response.headers.get('ETag')) };
    if (!('id' in answer)) {
      await sleep(LOOK_AGAIN_MS, signal);
      continue;
    }
    const job = await waitForEnd(connection, answer.id, { signal });
    if (job.state !== 'succeeded') throw errorOfJob(job);
  }
}

const changed = (aid: string) =>
  new WindlassError({
    code: 'changed',
    detail: `Another table has taken the place of ${aid} while it was read.`,
    hint: 'Read it again from its beginning.',
  });
