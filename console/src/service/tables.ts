import { useQuery } from '@tanstack/preact-query';
import { type components, type RowsPage, unwrap, type Value } from '@windlass/client';
import { queries, windlass } from './client.ts';
import type { View } from './table-view.ts';
import { tagged, tagOf } from './tagged.ts';

type Schemas = components['schemas'];
export type Table = Schemas['Table'];
export type Column = Table['columns'][number];
export type Histogram = Schemas['Histogram'];

export { valueText } from '../../../clients/typescript/src/value-text.ts';
export type { RowsPage, Value };

/** A table of a model, as it is until another one takes its place. */
export interface TableKey {
  mid: string;
  aid: string;
  /** The table's entity tag. */
  tag: string;
}

/** How often the service is asked whether another table has taken its place. */
const TABLE_MS = 10_000;

export interface SeriesRange {
  filter: string[];
  x: string;
  y: string;
  points: number;
  from: string | undefined;
  to: string | undefined;
}

export const useTable = ({ mid, aid }: Omit<TableKey, 'tag'>) =>
  useQuery({
    queryKey: ['table', mid, aid],
    queryFn: ({ signal }) =>
      tagged(
        windlass.api.GET('/api/models/{mid}/tables/{aid}/metadata', {
          params: { path: { mid, aid } },
          signal,
        }),
      ),
    refetchInterval: TABLE_MS,
  });

export interface RowsQuery {
  offset: number;
  limit: number;
  columns?: string[];
}

/** Call it after an error of a table's rows: another table may have taken its place. */
export const lookAgain = ({ mid, aid }: TableKey) =>
  queries.invalidateQueries({ queryKey: ['table', mid, aid], exact: true });

/** Rows of a view, once it is made. */
export const readRowsOf = (
  { mid, aid, tag }: TableKey,
  view: View,
  query: RowsQuery,
  signal: AbortSignal,
): Promise<RowsPage> =>
  // Asks for rows of that table alone: another one, with other columns, may have taken its place.
  windlass.rowsPage(mid, aid, { ...query, ...view, signal, ...(tag !== '' && { tag }) });

/** The histogram of a column, over the rows that pass all filters. */
export const useHistogram = (
  { mid, aid, tag }: TableKey,
  query: { column: string; bins: number; filter: string[] },
) =>
  useQuery({
    queryKey: ['table', mid, aid, tag, 'histogram', query],
    queryFn: ({ signal }) =>
      ofView({ mid, aid, filter: query.filter, signal }, () =>
        windlass.api.GET('/api/models/{mid}/tables/{aid}/histogram', {
          params: { path: { mid, aid }, query },
          signal,
        }),
      ),
    staleTime: 60_000,
  });

/** The answer about a view. Waits for the job that makes the view. */
async function ofView<Data>(
  {
    signal,
    ...view
  }: { mid: string; aid: string; sort?: string[]; filter: string[]; signal?: AbortSignal },
  ask: () => Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Extract<Data, { column: string } | { buckets: object }>> {
  if (view.filter.length > 0) await makeView(view, signal);
  const answer = await unwrap<Data>(ask());
  // The view was removed just now, and is made again.
  if (typeof answer === 'object' && answer !== null && 'state' in answer)
    return ofView({ ...view, signal }, ask);
  return answer as Extract<Data, { column: string } | { buckets: object }>;
}

/** Returns once there are rows of the view. */
export async function makeView(
  { mid, aid, ...view }: { mid: string; aid: string; sort?: string[]; filter: string[] },
  signal?: AbortSignal,
): Promise<void> {
  await windlass.rowsPage(mid, aid, { ...view, limit: 1, signal });
}

/** The least and greatest y in each bucket of x, over the rows that pass all filters. */
export const useSeries = ({ mid, aid, tag }: TableKey, range: SeriesRange) =>
  useQuery({
    queryKey: ['table', mid, aid, tag, 'series', range],
    queryFn: ({ signal }) =>
      ofView({ mid, aid, filter: range.filter, signal }, () =>
        windlass.api.GET('/api/models/{mid}/tables/{aid}/series', {
          params: { path: { mid, aid }, query: range },
          signal,
        }),
      ),
    staleTime: 60_000,
    // Other columns and other rows have other values, and other scales.
    placeholderData: (before, query) => {
      const { x, y, filter } = (query?.queryKey.at(-1) ?? {}) as Partial<SeriesRange>;
      const isOfSame =
        JSON.stringify([x, y, filter]) === JSON.stringify([range.x, range.y, range.filter]);
      return isOfSame ? before : undefined;
    },
    enabled: range.points > 0,
  });

/** The most rows of one answer in CSV. */
const CSV_ROWS = 1_000_000;

/** All rows of a view as CSV, in answers of a million rows that are joined. */
export async function readCsv(
  table: TableKey,
  view: View,
  { onProgress, signal }: { onProgress: (rows: number) => void; signal: AbortSignal },
): Promise<Blob> {
  const pieces: Blob[] = [];
  let head = 0;
  const { mid, aid } = table;
  const headers: Record<string, string> = { Accept: 'text/csv' };
  const look = () => readRowsOf(table, view, { offset: 0, limit: 1 }, signal);
  for (let offset = 0, total = 1; offset < total; ) {
    // By then the view is there, so that the answer is its rows.
    ({ total } = await look());
    const query = { ...view, offset, limit: CSV_ROWS };
    const asked = windlass.api.GET('/api/models/{mid}/tables/{aid}/rows', {
      params: { path: { mid, aid }, query },
      headers,
      parseAs: 'blob',
      signal,
    });
    const piece = (await unwrap<unknown>(asked)) as Blob;
    // The view was removed just now, and is made again.
    if ((await asked).response.status === 202) continue;
    // As CSV the table has another tag. The next request gets 412 where another table has taken its place.
    const tag = tagOf((await asked).response);
    if (tag !== '') headers['If-Match'] = tag;
    if (offset === 0) head = await headBytes(piece);
    pieces.push(offset === 0 ? piece : piece.slice(head));
    offset += CSV_ROWS;
    onProgress(Math.min(total, offset));
  }
  // Throws where the rows are of another table than the one shown.
  await look();
  return new Blob(pieces, { type: 'text/csv' });
}

/** Bytes of the line of names at the beginning; names in quotes may hold line breaks. */
async function headBytes(csv: Blob): Promise<number> {
  const bytes = new Uint8Array(await csv.slice(0, 1 << 20).arrayBuffer());
  let isQuoted = false;
  for (const [at, byte] of bytes.entries()) {
    if (byte === 0x22) isQuoted = !isQuoted;
    if (byte === 0x0a && !isQuoted) return at + 1;
  }
  return bytes.length;
}
