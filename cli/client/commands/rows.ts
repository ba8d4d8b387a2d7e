import { unwrap } from '../../../clients/typescript/src/api.ts';
import { type RowsPage, rowsOfAnswer, type Value } from '../../../clients/typescript/src/rows.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { printTable } from '../../output/print-records.ts';
import { write } from '../../output/write.ts';
import { connect } from '../connect.ts';

export interface RowsOptions {
  offset?: number;
  limit: number;
  columns?: string[];
  sort?: string[];
  filter?: string[];
  csv?: boolean;
  json?: boolean;
}

type Query = Omit<RowsOptions, 'csv' | 'json'>;

/** `windlass rows`: rows of a table of a model. */
export async function printRows(
  mid: string,
  aid: string,
  { csv, json, ...query }: RowsOptions,
): Promise<void> {
  const windlass = await connect();
  if (json) {
    for await (const { columns, rows } of readPages(windlass, { mid, aid }, query))
      for (const row of rows) await write(process.stdout, `${toJson(columns, row)}\n`);
    return;
  }
  if (!csv) {
    let head: string[] = [];
    const cells: string[][] = [];
    for await (const { columns, rows } of readPages(windlass, { mid, aid }, query)) {
      head = columns;
      cells.push(...rows.map(row => row.map(value => String(value ?? ''))));
    }
    return printTable(head, cells);
  }
  for await (const piece of await askCsv(windlass, { mid, aid }, query))
    await write(process.stdout, piece);
}

async function askCsv(
  windlass: Windlass,
  table: { mid: string; aid: string },
  query: Query,
): Promise<AsyncIterable<Uint8Array>> {
  for (;;) {
    // Its view has been made when its first row comes.
    for await (const _ of windlass.rows(table.mid, table.aid, { ...query, limit: 1 }));
    const asked = windlass.api.GET('/api/models/{mid}/tables/{aid}/rows', {
      params: { path: table, query },
      headers: { Accept: 'text/csv' },
      parseAs: 'stream',
    });
    const bytes = await unwrap<unknown>(asked);
    // 202: the view was removed just now, and is made again.
    if ((await asked).response.status === 200) return bytes as AsyncIterable<Uint8Array>;
  }
}

/** Pages of rows beside the names of their columns, the first one of an empty table too. */
async function* readPages(
  windlass: Windlass,
  { mid, aid }: { mid: string; aid: string },
  { offset = 0, limit, ...view }: Query,
): AsyncGenerator<RowsPage> {
  let tag: string | undefined;
  let most = rowsOfAnswer();
  for (let at = offset, end = offset + limit; at < end; ) {
    const query = { ...view, offset: at, limit: Math.min(most, end - at), tag };
    const page = await windlass.rowsPage(mid, aid, query);
    yield page;
    tag = page.tag;
    most = rowsOfAnswer(page.columns.length);
    at += page.rows.length;
    end = Math.min(end, page.total);
  }
}

/** In the order of the columns: an object of JavaScript moves names such as 2019 to its beginning. */
function toJson(columns: string[], row: Value[]): string {
  const members = columns.map(
    (name, n) => `${JSON.stringify(name)}:${JSON.stringify(row[n] ?? null)}`,
  );
  return `{${members.join(',')}}`;
}
