import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';

/** DuckDB counts its own buffers only: Node and what it does not count need the rest of the child's memory. */
const SHARE_OF_MEMORY = 0.4;
/** Of wide tables it counts more than it touches. */
const SHARE_WHEN_WIDE = 0.7;
/** Each thread holds 2,048 rows of all columns. */
const WIDE = 100;
/** Sorting and counting spill at most so much onto the worker's disk, beside the table itself. */
const SPILL = '20GB';

/**
 * A DuckDB that knows the scratch folder and nothing else: no other file, no network, no extension that is not built
 * in, and no statement can change that.
 */
export async function openDuckdb({
  scratch,
  memory,
  columns,
}: {
  scratch: string;
  memory: number;
  columns: number;
}): Promise<DuckDBConnection> {
  const isWide = columns > WIDE;
  const limit = memory * (isWide ? SHARE_WHEN_WIDE : SHARE_OF_MEMORY);
  const instance = await DuckDBInstance.create(':memory:', {
    // Memory grows with threads, and a worker has other work.
    threads: isWide ? '1' : '2',
    // One thread keeps the order as it is, without the buffers that keeping it among several takes.
    preserve_insertion_order: String(!isWide),
    memory_limit: `${Math.floor(limit / 2 ** 20)}MiB`,
    temp_directory: join(scratch, 'spill'),
    max_temp_directory_size: SPILL,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    allow_community_extensions: 'false',
    allow_unsigned_extensions: 'false',
    // Freed memory goes back to the system at once rather than after 128 MiB.
    allocator_flush_threshold: '16MiB',
    allocator_bulk_deallocation_flush_threshold: '16MiB',
  });
  const connection = await instance.connect();
  for (const statement of [
    `SET allowed_directories = [${text(scratch)}]`,
    'SET enable_external_access = false',
    `SET TimeZone = 'UTC'`,
    // A wide table's footer is read once, not again for each column's facts.
    'SET parquet_metadata_cache = true',
    'SET enable_progress_bar = true',
    'SET enable_progress_bar_print = false',
    'SET lock_configuration = true',
  ])
    await connection.run(statement);
  return connection;
}

/** A text as SQL. */
export const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
/** A name as SQL. */
export const name = (value: string) => `"${value.replaceAll('"', '""')}"`;

/** The rows of a query as DuckDB's own JSON: integers and times as texts. */
export async function query(
  connection: DuckDBConnection,
  sql: string,
): Promise<Record<string, unknown>[]> {
  return (await connection.runAndReadAll(sql)).getRowObjectsJson() as Record<string, unknown>[];
}

/** Runs a long statement and tells how far it is, 0…1, about twice a second. */
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

/** What a failure of DuckDB is about, by its words: it has no codes. */
export function classify(error: unknown): 'memory' | 'disk' | 'other' {
  const words = error instanceof Error ? error.message : String(error);
  if (/No space left|max_temp_directory_size|ENOSPC|EDQUOT/i.test(words)) return 'disk';
  if (
    /Out of Memory|bad_alloc|could not allocate|failed to allocate|heap out of memory/i.test(words)
  )
    return 'memory';
  return 'other';
}
