import { join } from 'node:path';
import type * as Duckdb from '@duckdb/node-api';
import type { DuckDBConnection } from '@duckdb/node-api';
import { requirePackage } from '../../../shared/process/require-package.ts';
import { isUnloadable } from '../../engine/unloadable-program.ts';
import { LARGEST_SHARE, type Resources, USUAL_SHARE } from './protocol.ts';

const { DuckDBInstance } = requirePackage<typeof Duckdb>('@duckdb/node-api');

/** Columns. Each thread holds 2,048 rows of all columns in memory. */
const WIDE = 100;
/** The most that sorting and counting spill to the worker's disk, in addition to the table. */
const SPILL = '20GB';

let lastHadMost = false;
/** Whether the DuckDB that was opened last has a single thread and the largest share. */
export const hadMost = () => lastHadMost;

/**
 * Opens a DuckDB that can access only the scratch directory: no network, no extension that is not built in. Its
 * configuration is locked, so that no statement can change that.
 */
export async function openDuckdb(
  { scratch, memory, threads, share: asked }: Resources,
  columns: number,
): Promise<DuckDBConnection> {
  const isWide = columns > WIDE;
  const share = asked ?? (isWide ? LARGEST_SHARE : USUAL_SHARE);
  const limit = memory * share;
  const isSingle = isWide || threads === 1;
  lastHadMost = isSingle && share === LARGEST_SHARE;
  const instance = await DuckDBInstance.create(':memory:', {
    // Memory grows with the number of threads, and workers run other jobs too.
    threads: isSingle ? '1' : '2',
    // A single thread preserves the order anyway, without the buffers that this option takes.
    preserve_insertion_order: String(!isSingle),
    memory_limit: `${Math.floor(limit / 2 ** 20)}MiB`,
    temp_directory: join(scratch, 'spill'),
    max_temp_directory_size: SPILL,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
    allow_unsigned_extensions: 'false',
    // Returns freed memory to the system at once, not after 128 MiB.
    allocator_flush_threshold: '16MiB',
    allocator_bulk_deallocation_flush_threshold: '16MiB',
  });
  const connection = await instance.connect();
  for (const statement of [
    `SET allowed_directories = [${quoteText(scratch)}]`,
    'SET enable_external_access = false',
    `SET TimeZone = 'UTC'`,
    // Reads a wide table's footer once, not for each query of its statistics.
    'SET parquet_metadata_cache = true',
    // A cache of file contents, which the system has anyway: 100 MB while a table of 1,000 columns was copied.
    'SET enable_external_file_cache = false',
    'SET enable_progress_bar = true',
    'SET enable_progress_bar_print = false',
    'SET lock_configuration = true',
  ])
    await connection.run(statement);
  return connection;
}

/** An SQL string literal; COPY, SET and read_csv() take no parameters. */
export const quoteText = (value: string) => `'${value.replaceAll("'", "''")}'`;
/** An SQL identifier. */
export const quoteName = (value: string) => `"${value.replaceAll('"', '""')}"`;

/** The rows of a query in DuckDB's JSON form, with integers and times as texts. */
export async function query(
  connection: DuckDBConnection,
  sql: string,
): Promise<Record<string, unknown>[]> {
  return (await connection.runAndReadAll(sql)).getRowObjectsJson() as Record<string, unknown>[];
}

/** A Parquet file as a relation. */
export const readParquet = (path: string) => `read_parquet(${quoteText(path)})`;

export async function countRows(connection: DuckDBConnection, relation: string): Promise<number> {
  const [counted] = await query(connection, `SELECT count(*) AS n FROM ${relation}`);
  return Number(counted?.n ?? 0);
}

/** An SQL expression for a text or its beginning. DuckDB's client drops a byte order mark there, so that another character comes first. */
export const quoted = (value: string, cut?: number) =>
  `'"' || ${cut === undefined ? value : `left(${value}, ${cut})`}`;
export const unquoted = (text: unknown) => String(text).slice(1);

/** Runs a long statement and reports progress, 0…1, about twice a second. */
export async function runLong(
  connection: DuckDBConnection,
  sql: string,
  onProgress: (share: number) => void,
): Promise<void> {
  const timer = setInterval(() => {
    const { percentage } = connection.progress;
    if (percentage >= 0) onProgress(percentage / 100);
  }, 500);
  try {
    await connection.run(sql);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Classifies an error by its message, as DuckDB's have no codes. EFBIG comes from the child's limit on files, which is
 * the space that was free at its start.
 */
export function classifyError(error: unknown): 'memory' | 'disk' | 'modules' | 'other' {
  if (isUnloadable(error)) return 'modules';
  const message = error instanceof Error ? error.message : String(error);
  if (/No space left|max_temp_directory_size|ENOSPC|EDQUOT|EFBIG/i.test(message)) return 'disk';
  if (
    /Out of Memory|bad_alloc|could not allocate|failed to allocate|heap out of memory/i.test(
      message,
    )
  )
    return 'memory';
  return 'other';
}
