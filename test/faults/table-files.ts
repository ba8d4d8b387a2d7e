import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import h5wasm from 'h5wasm/node';
import type { Client } from '../../servers/api-client.ts';
import { formatNpyHeader } from '../../shared/arrays/npy-header.ts';
import type { ParserName } from '../../shared/uploads/parsers.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { makeWorkbook } from '../harness/files/make-workbook.ts';
import { makeZip } from '../harness/files/make-zip.ts';

/** A file, and the path of what its parser makes of it below a model, with the artifact's name as `$`. */
export interface FormatFile {
  format: string;
  parser: ParserName;
  bytes: Buffer;
  made: string;
}

const ROWS = 40_000;
const ROWS_OF = '/tables/$/rows?limit=1000000';

/** One file of each format, with numbers and texts that take a worker some tenths of a second. */
export async function makeFormatFiles(
  client: Client,
  { mid, directory }: { mid: string; directory: string },
): Promise<FormatFile[]> {
  const rows = Array.from({ length: ROWS }, (_, n) => ({
    n,
    x: (n % 977) / 8,
    t: `text ${n % 89}`,
  }));
  const csv = Buffer.from(`n,x,t\n${rows.map(({ n, x, t }) => `${n},${x},${t}\n`).join('')}`);
  const path = await makeTable(client, { mid, aid: 'the source', csv: csv.toString() });
  const parquet = Buffer.from(await (await client.fetch(`${path}/data`)).arrayBuffer());
  const cells = rows.map(
    ({ n, x }) => `<x:row><x:c><x:v>${n}</x:v></x:c><x:c><x:v>${x}</x:v></x:c></x:row>`,
  );
  const integers = BigInt64Array.from(rows, ({ n }) => BigInt(n));
  return [
    { format: 'csv', parser: 'csv', bytes: csv, made: ROWS_OF },
    { format: 'gzip', parser: 'csv', bytes: gzipSync(csv), made: ROWS_OF },
    { format: 'json', parser: 'json', bytes: Buffer.from(JSON.stringify(rows)), made: ROWS_OF },
    {
      format: 'ndjson',
      parser: 'ndjson',
      made: ROWS_OF,
      bytes: Buffer.from(rows.map(row => `${JSON.stringify(row)}\n`).join('')),
    },
    { format: 'parquet', parser: 'parquet', bytes: parquet, made: ROWS_OF },
    {
      format: 'npy',
      parser: 'npy',
      made: '/arrays/$/data',
      bytes: Buffer.concat([formatNpyHeader('<i8', [2, ROWS / 2]), Buffer.from(integers.buffer)]),
    },
    {
      format: 'zip',
      parser: 'zip',
      made: '/tables/$%2Fin.csv/rows?limit=1000000',
      bytes: makeZip([{ name: 'in.csv', content: csv }]),
    },
    {
      format: 'xlsx',
      parser: 'xlsx',
      made: '/tables/$%2FS/rows?limit=1000000',
      bytes: makeWorkbook({ sheet: cells.join('') }),
    },
    {
      format: 'hdf5',
      parser: 'hdf5',
      made: '/arrays/$%2Fgrid/data',
      bytes: await makeHdf5(join(directory, 'grid.h5'), integers),
    },
    { format: 'blob', parser: 'blob', bytes: csv, made: '/files/$' },
  ];
}

async function makeHdf5(path: string, integers: BigInt64Array): Promise<Buffer> {
  await h5wasm.ready;
  const file = new h5wasm.File(path, 'w');
  file.create_dataset({ name: 'grid', data: integers, shape: [2, ROWS / 2] });
  file.close();
  return readFileSync(path);
}
