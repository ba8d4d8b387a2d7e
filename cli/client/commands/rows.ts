import { unwrap } from '../../../clients/typescript/src/api.ts';
import type { Row } from '../../../clients/typescript/src/rows.ts';
import { connect } from '../connect.ts';
import { write } from '../print-output.ts';
import { type Columns, printRecord, printRecords } from '../print-records.ts';

export interface RowsOptions {
  offset?: number;
  limit: number;
  columns?: string[];
  sort?: string[];
  filter?: string[];
  csv?: boolean;
  json?: boolean;
}

/** `windlass rows`: rows of a table of a model. */
export async function printRows(
  mid: string,
  aid: string,
  { csv, json, ...query }: RowsOptions,
): Promise<void> {
  const windlass = await connect();
  if (json) {
    for await (const row of windlass.rows(mid, aid, query)) await printRecord(row, { json });
    return;
  }
  if (!csv) {
    const rows: Row[] = [];
    for await (const row of windlass.rows(mid, aid, query)) rows.push(row);
    return printRecords(rows, { columns: columnsOf(rows) });
  }
  // Its view has been made when its first row comes.
  for await (const _ of windlass.rows(mid, aid, { ...query, limit: 1 }));
  const bytes = await unwrap(
    windlass.api.GET('/api/models/{mid}/tables/{aid}/rows', {
      params: { path: { mid, aid }, query },
      headers: { Accept: 'text/csv' },
      parseAs: 'stream',
    }),
  );
  for await (const piece of bytes as unknown as AsyncIterable<Uint8Array>)
    await write(process.stdout, piece);
}

function columnsOf([first = {}]: Row[]): Columns<Row> {
  const cellOf = (name: string) => (row: Row) => String(row[name] ?? '');
  return Object.fromEntries(Object.keys(first).map(name => [name, cellOf(name)]));
}
