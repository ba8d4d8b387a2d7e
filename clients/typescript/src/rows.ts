import { unwrap } from './api.ts';
import { sleep } from './backoff.ts';
import type { Connection } from './connection.ts';
import { ANSWER_MS } from './http.ts';
import { errorOfJob, waitForEnd } from './jobs.ts';
import type { components, operations } from './schema.ts';

type Query = NonNullable<operations['readRows']['parameters']['query']>;
export type RowsPage = components['schemas']['TableRows'];

export type Value = RowsPage['rows'][number][number];
export type Row = Record<string, Value>;

export interface RowsOptions extends Query {
  signal?: AbortSignal;
}

/** The most rows of an answer. */
const PAGE = 10_000;
/** How long to wait for a view that another user's job makes. */
const LOOK_AGAIN_MS = 500;

/** Rows of a table, each by the names of its columns: from `offset` on, `limit` of them or all. */
export async function* readRows(
  connection: Connection,
  table: { mid: string; aid: string },
  { signal, offset = 0, limit = Infinity, ...view }: RowsOptions,
): AsyncGenerator<Row> {
  for (let at = offset, end = offset + limit; at < end; ) {
    const query = { ...view, offset: at, limit: Math.min(PAGE, end - at) };
    const { columns, rows, total } = await readPage(connection, { ...table, query, signal });
    for (const row of rows)
      yield Object.fromEntries(columns.map((column, n) => [column, row[n] ?? null]));
    at += rows.length;
    end = Math.min(end, total);
  }
}

/** A page of a view, once the view is there. */
export async function readPage(
  connection: Connection,
  {
    query,
    signal,
    ...path
  }: { mid: string; aid: string; query: Query; signal: AbortSignal | undefined },
): Promise<RowsPage> {
  for (;;) {
    const answer = await unwrap(
      connection.api.GET('/api/models/{mid}/tables/{aid}/rows', {
        params: { path, query, header: { Prefer: 'wait=25' } },
        signal,
        timeoutMs: ANSWER_MS,
      }),
    );
    if ('rows' in answer) return answer;
    if (!('id' in answer)) {
      await sleep(LOOK_AGAIN_MS, signal);
      continue;
    }
    const job = await waitForEnd(connection, answer.id, { signal });
    if (job.state !== 'succeeded') throw errorOfJob(job);
  }
}
