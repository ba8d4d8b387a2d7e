import { createReadStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';
import { parse } from 'csv-parse';
import type { Client } from '../../servers/api-client.ts';
import { type ComparisonResult, compare } from '../compare.ts';
import { beginUpload, makeModel, parseUpload } from './begin-upload.ts';
import { type CsvShape, writeCsv } from './csv-files.ts';
import { sendParts } from './send-parts.ts';

const MB = 1e6;
const SIZE = 200 * MB;
/** What `rows` answers at once. */
const PAGE_ROWS = 1_000_000;

interface Options {
  client: Client;
  shape: CsvShape;
  directory: string;
}

/** Compares the way from a CSV file that is uploaded to its table with DuckDB's and csv-parse's. */
export async function compareTables(options: Options): Promise<ComparisonResult[]> {
  const { client, shape, directory } = options;
  const path = join(directory, 'table.csv');
  const rows = await writeCsv(path, shape, SIZE);
  const mid = await makeModel(client);
  const ours = () => measureTable(client, mid, path);
  await ours();
  await checkValues(client, { mid, path, rows });
  const name = `CSV to table, ${shape.name}`;
  return [
    await compare({
      name: `${name}, against DuckDB's CSV to Parquet`,
      ours,
      baseline: () => measureRate(path, () => copyByDuckdb(path, join(directory, 'peer.parquet'))),
      unit: 'MB/s',
      target: 0.7,
    }),
    await compare({
      name: `${name}, against csv-parse`,
      ours,
      baseline: () => measureRate(path, () => readByCsvParse(path, rows)),
      unit: 'MB/s',
      target: 5,
    }),
  ];
}

/** MB/s from `finished` to the end of the job. Parses into the same artifact each time. */
async function measureTable(client: Client, mid: string, path: string): Promise<number> {
  const { uid, partUrl, headers } = await beginUpload(client, mid, 'csv');
  let parts = 0;
  await sendParts(readFileSync(path), part => {
    parts++;
    return { url: partUrl(part), method: 'PUT', headers, status: 200 };
  });
  return measureRate(path, () => parseUpload(client, uid, parts));
}

async function measureRate(path: string, work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return readFileSync(path).length / MB / ((performance.now() - began) / 1_000);
}

async function copyByDuckdb(input: string, output: string): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run(`copy (from read_csv('${input}')) to '${output}' (format parquet)`);
  connection.closeSync();
  instance.closeSync();
}

async function readByCsvParse(path: string, rows: number): Promise<void> {
  let read = 0;
  for await (const _ of createReadStream(path).pipe(parse({ from: 2 }))) read++;
  if (read !== rows) throw new Error(`csv-parse read ${read} of ${rows} rows.`);
}

/** Throws for the first cell that does not come back as the same text or the same number. */
async function checkValues(
  client: Client,
  { mid, path, rows }: { mid: string; path: string; rows: number },
): Promise<void> {
  const lines = createInterface({ input: createReadStream(path) })[Symbol.asyncIterator]();
  await lines.next();
  for (let offset = 0; offset < rows; offset += PAGE_ROWS) {
    const url = `/api/models/${mid}/tables/measured/rows?offset=${offset}&limit=${PAGE_ROWS}`;
    const { bytes } = await client.getBytes(url, { Accept: 'text/csv' });
    const [, ...answered] = bytes.toString().trimEnd().split(/\r?\n/);
    for (const [i, row] of answered.entries()) {
      const { value: line = '' } = await lines.next();
      if (!isSameRow(line, row)) throw new Error(`Row ${offset + i} is ${row} and was ${line}.`);
    }
  }
  if (!(await lines.next()).done) throw new Error('The table has fewer rows than the file.');
}

function isSameRow(line: string, row: string): boolean {
  if (line === row) return true;
  const cells = row.split(',');
  return line.split(',').every((cell, i) => cell === cells[i] || Number(cell) === Number(cells[i]));
}
