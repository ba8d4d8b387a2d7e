import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parquetMetadata } from 'hyparquet';
import { isExact } from '../../../api/tables/encode-value.ts';
import { readPage } from '../../../api/tables/read-page.ts';
import type { ColumnStatistics } from '../../../shared/database/schema.ts';
import type { MadeTable, Resources } from '../../../workers/parsers/table/protocol.ts';

export interface ParsedTable extends MadeTable {
  columns: ColumnStatistics[];
  /** The JSON text of each value by column, as the API answers it. */
  json: string[][];
}

interface Files extends Resources {
  input: string;
  output: string;
}

/** Parses a file in this process, in a new folder below the given one, and reads the table as the API does. */
export async function parseTable(
  folder: string,
  content: string | Uint8Array,
  parse: (files: Files) => Promise<MadeTable>,
): Promise<ParsedTable> {
  const scratch = await mkdtemp(join(folder, 'parse-'));
  const input = join(scratch, 'upload');
  const output = join(scratch, 'table.parquet');
  await writeFile(input, content);
  const made = await parse({ scratch, input, output, memory: 2 ** 30, threads: 2 });
  const columns = made.columns ?? [];
  return { ...made, columns, json: await readColumns(output, { columns, rows: made.rows }) };
}

/** The JSON text of each value by column, as the API answers it. */
export async function readColumns(
  path: string,
  { columns, rows }: { columns: ColumnStatistics[]; rows: number },
): Promise<string[][]> {
  const bytes = await readFile(path);
  const buffer = bytes.buffer.slice(
    bytes.byteOffset,
    bytes.byteOffset + bytes.length,
  ) as ArrayBuffer;
  const file = {
    byteLength: buffer.byteLength,
    slice: (start: number, end?: number) => buffer.slice(start, end),
  };
  const metadata = parquetMetadata(buffer);
  const json: string[][] = [];
  for (const column of columns) {
    const exact = isExact(column) ? [column.name] : [];
    const page = await readPage(file, metadata, {
      columns: [column.name],
      exact,
      start: 0,
      end: rows,
    });
    json.push(splitCells(page));
  }
  return json;
}

/** The JSON texts in [[a],[b],…]. */
function splitCells(page: string): string[] {
  return [...page.matchAll(/\[((?:"(?:[^"\\]|\\.)*"|[^[\]"])*)\]/g)].map(([, cell = '']) => cell);
}
