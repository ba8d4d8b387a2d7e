import { type RowsPage, rowsOfAnswer, type Value } from '../../../clients/typescript/src/rows.ts';
import { valueText } from '../../../clients/typescript/src/value-text.ts';
import type { Windlass } from '../../../clients/typescript/src/windlass.ts';
import { printNotice } from '../../output/print-notice.ts';
import { printTable } from '../../output/print-records.ts';
import { write } from '../../output/write.ts';
import { connect } from '../connect.ts';
import { endLinesByLf } from '../end-lines.ts';
import { readCsv } from '../read-csv.ts';

export interface RowsOptions {
  offset?: number;
  limit?: number;
  columns?: string[];
  sort?: string[];
  filter?: string[];
  csv?: boolean;
  json?: boolean;
}

type Query = Omit<RowsOptions, 'csv' | 'json'>;

/** A table for people has no more rows, unless they ask for them. */
const DRAWN_ROWS = 100;

/** `windlass rows`: rows of a table of a model. For programs, as CSV or JSON, all of them. */
export async function printRows(
  mid: string,
  aid: string,
  { csv, json, ...query }: RowsOptions,
): Promise<void> {
  const windlass = await connect();
  const table = { mid, aid };
  if (json) await printJson(windlass, table, query);
  else if (csv) await printCsv(windlass, table, query);
  else await drawRows(windlass, table, { limit: DRAWN_ROWS, ...query });
}

interface Table {
  mid: string;
  aid: string;
}

async function printJson(windlass: Windlass, table: Table, query: Query): Promise<void> {
  let total = 0;
  for await (const page of readPages(windlass, table, query)) {
    total = page.total;
    for (const row of page.rows) await write(process.stdout, `${toJson(page.columns, row)}\n`);
  }
  tellCut(total, query);
}

async function printCsv(windlass: Windlass, table: Table, query: Query): Promise<void> {
  const { offset = 0, limit = Infinity, ...view } = query;
  // Its view has been made, and its rows are counted, when the first one comes.
  const first = { ...view, offset, limit: 1 };
  const { total, tag } = await windlass.rowsPage(table.mid, table.aid, first);
  const end = Math.min(total, offset + limit);
  for await (const piece of endLinesByLf(readCsv(windlass, table, { view, offset, end, total })))
    await write(process.stdout, piece);
  // The rows of another table would have been counted otherwise: this throws.
  await windlass.rowsPage(table.mid, table.aid, { ...first, tag });
  tellCut(total, query);
}

async function drawRows(windlass: Windlass, table: Table, query: Query): Promise<void> {
  let head: string[] = [];
  let total = 0;
  const cells: string[][] = [];
  for await (const page of readPages(windlass, table, query)) {
    head = page.columns;
    total = page.total;
    cells.push(...page.rows.map(row => row.map(value => valueText(value ?? ''))));
  }
  await printTable(head, cells);
  tellCut(total, query);
}

/** What is left out looks like the end otherwise. */
function tellCut(total: number, { offset = 0, limit = Infinity }: Query): void {
  if (offset + limit >= total) return;
  const [shown, all] = [limit, total].map(count => count.toLocaleString('en'));
  printNotice(`${shown} of ${all} rows; --limit N for more`);
}

/** Pages of rows beside the names of their columns, the first one of an empty table too. */
async function* readPages(
  windlass: Windlass,
  { mid, aid }: Table,
  { offset = 0, limit = Infinity, ...view }: Query,
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
    (name, n) => `${JSON.stringify(name)}:${valueToJson(row[n] ?? null)}`,
  );
  return `{${members.join(',')}}`;
}

const valueToJson = (value: Value) =>
  typeof value === 'number' ? valueText(value) : JSON.stringify(value);
