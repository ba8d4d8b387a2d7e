/**
 * The thread of an API process that decodes tables, so that a large page does not block the event loop. It requests ranges
 * of bytes from the main thread, which has the connection to the object store.
 */
import { parentPort } from 'node:worker_threads';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync } from 'hyparquet';
import { LRUCache } from 'lru-cache';
import { exportRows } from './export-rows.ts';
import { countValues, makeHistogram } from './histogram.ts';
import { readPage } from './read-page.ts';
import type { OpenTable } from './row-groups.ts';
import { SeriesReader } from './series.ts';
import {
  type FromThread,
  type TableFile,
  TableReadError,
  type TableTask,
  type TaskResult,
  type ToThread,
} from './thread-protocol.ts';

/**
 * Recently used footers, which never change under an object's key. Sizes are in bytes as stored; decoded they take about
 * five times as much.
 */
const footers = new LRUCache<string, FileMetaData>({ maxSize: 48 << 20 });
/** The footer is read with the last bytes of the file, and in a second request when it is longer. */
const FOOTER_BYTES = 1 << 18;

const series = new SeriesReader();

const port = parentPort;
if (!port) throw new Error('this is a thread of the API');
const waiting = new Map<number, (bytes: ArrayBuffer | undefined) => void>();
let fetches = 0;
const tell = (message: FromThread, transfer: ArrayBuffer[] = []) =>
  port.postMessage(message, transfer);

port.on('message', (message: ToThread) => {
  if ('fetch' in message) {
    waiting.get(message.fetch)?.(message.bytes);
    waiting.delete(message.fetch);
  } else void answer(message.id, message.file, message.task);
});

async function answer(id: number, file: TableFile, task: TableTask): Promise<void> {
  try {
    const { bytes, next } = await runTask(id, file, task);
    tell({ id, bytes, next }, [bytes.buffer as ArrayBuffer]);
  } catch (error) {
    if (error instanceof TableReadError)
      tell({ id, tooLarge: { detail: error.message, hint: error.hint } });
    else
      tell({ id, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

async function runTask(id: number, { key, size }: TableFile, task: TableTask): Promise<TaskResult> {
  const file = fileOf(id, size);
  const metadata = footers.get(key) ?? (await readFooter(key, file));
  if (task.kind === 'export') return exportRows({ key, file, metadata }, task);
  return { bytes: new TextEncoder().encode(await makeJson({ key, file, metadata }, task)) };
}

function makeJson(table: OpenTable, task: Exclude<TableTask, { kind: 'export' }>): Promise<string> {
  const { file, metadata } = table;
  if (task.kind === 'rows') return readPage(file, metadata, task);
  if (task.kind === 'series') return series.read(table, task);
  const { column } = task;
  return column.type === 'boolean' || column.type === 'text'
    ? countValues(file, metadata, column.name)
    : makeHistogram(file, metadata, task);
}

async function readFooter(key: string, file: AsyncBuffer): Promise<FileMetaData> {
  const metadata = await parquetMetadataAsync(file, { initialFetchSize: FOOTER_BYTES });
  footers.set(key, metadata, { size: metadata.metadata_length });
  return metadata;
}

function fileOf(id: number, size: number): AsyncBuffer {
  return {
    byteLength: size,
    slice: (start, end = size) =>
      new Promise((resolve, reject) => {
        const fetch = ++fetches;
        waiting.set(fetch, bytes =>
          bytes ? resolve(bytes) : reject(new Error('the bytes could not be read')),
        );
        tell({ fetch, of: id, start, end: Math.min(end, size) });
      }),
  };
}
