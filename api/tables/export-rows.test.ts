import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC } from 'apache-arrow';
import { type FileMetaData, parquetMetadataAsync } from 'hyparquet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { exportRows } from './export-rows.ts';
import type { ExportFormat } from './thread-protocol.ts';

const ROWS = 60_000;
const NAMES = Array.from({ length: 40 }, (_, n) => `c${n}`);

const directory = makeTempDir('export-rows');
afterAll(() => directory.remove());
let bytes: ArrayBuffer;
let metadata: FileMetaData;
let read = 0;
const file = {
  get byteLength() {
    return bytes.byteLength;
  },
  slice: async (start: number, end?: number) => {
    const piece = bytes.slice(start, end);
    read += piece.byteLength;
    return piece;
  },
};

/** Two row groups, each of which makes five pieces or more. */
beforeAll(async () => {
  const path = join(directory.path, 'wide.parquet');
  const connection = await (await DuckDBInstance.create()).connect();
  const values = NAMES.map((name, n) => `(range * 1000 + ${n})::DOUBLE AS ${name}`);
  await connection.run(
    `COPY (SELECT ${values.join(', ')} FROM range(${ROWS})) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 30720)`,
  );
  bytes = new Uint8Array(readFileSync(path)).buffer;
  metadata = await parquetMetadataAsync(file);
  expect(metadata.row_groups).toHaveLength(2);
});

/** Piece by piece, as they are sent. */
async function* exportAll(format: ExportFormat, columns: string[]) {
  for (let start = 0; start < ROWS; ) {
    const request = { format, columns, start, end: ROWS, isFirst: start === 0 };
    const { bytes: piece, next = ROWS } = await exportRows({ key: 'k', file, metadata }, request);
    start = next;
    yield piece;
  }
}

test('each row group is read once, however many pieces it makes', async () => {
  for (const format of ['csv', 'arrow'] as const) {
    read = 0;
    let pieces = 0;
    for await (const _ of exportAll(format, NAMES)) pieces++;
    expect(pieces).toBeGreaterThan(4);
    expect(read).toBeLessThanOrEqual(bytes.byteLength);
  }
});

test('exports at once have each their own columns and rows', async () => {
  const orders = [NAMES, [...NAMES].reverse()];
  const running = orders.map(columns => ({ columns, pieces: exportAll('arrow', columns) }));
  const made = new Map<string[], Uint8Array[]>(orders.map(columns => [columns, []]));
  for (let open = running; open.length > 0; ) {
    const still: typeof open = [];
    for (const one of open) {
      const { value, done } = await one.pieces.next();
      if (done) continue;
      made.get(one.columns)?.push(value);
      still.push(one);
    }
    open = still;
  }
  for (const columns of orders) {
    const table = tableFromIPC(Buffer.concat(made.get(columns) ?? []));
    expect([table.numRows, table.schema.fields.map(({ name }) => name)]).toEqual([ROWS, columns]);
    for (const [n, name] of NAMES.entries()) {
      const values = table.getChild(name)?.toArray() as Float64Array;
      expect(values.findIndex((value, row) => value !== row * 1_000 + n)).toBe(-1);
    }
  }
});

test('few groups of exports that nobody goes on with are held', async () => {
  const orders = NAMES.slice(0, 5).map((_, n) => [...NAMES.slice(n), ...NAMES.slice(0, n)]);
  const running = orders.map(columns => exportAll('csv', columns));
  for (const pieces of running) await pieces.next();
  const isHeld = async (pieces: (typeof running)[number] | undefined) => {
    read = 0;
    await pieces?.next();
    return read === 0;
  };
  expect(await isHeld(running.at(-1))).toBe(true);
  expect(await isHeld(running[0])).toBe(false);
});
