import { open } from 'node:fs/promises';
import type { Dialect } from './dialect.ts';
import { RecordScanner, type RecordSpan, type Scan } from './record-scanner.ts';
import { NOT_UTF8, Utf8Check } from './utf8-check.ts';

const CHUNK_BYTES = 1 << 20;

interface ScanOptions {
  /** Indexes of records whose offsets are asked for. */
  wanted?: Set<number>;
  /** Called after each chunk, with what was found so far. */
  onBytes?(bytes: number, scan: Scan): void;
  /**
   * Gets each chunk with the well-formed records that end in it, and the offset where the next record begins. The next chunk
   * overwrites it.
   */
  onChunk?(chunk: Buffer, records: RecordSpan[], next: number): Promise<void>;
}

/**
 * Scans a whole file by RFC 4180 and reports its errors, in constant memory, at 250 to 700 MB/s. Hand-made: DuckDB,
 * which reads the file later, skips some broken rows silently, and npm's parsers build every value.
 */
export async function scanRecords(
  path: string,
  dialect: Dialect,
  options: ScanOptions = {},
): Promise<Scan> {
  const scanner = new RecordScanner(dialect, {
    wanted: options.wanted,
    keepsRecords: options.onChunk !== undefined,
  });
  const utf8 = new Utf8Check();
  let offset = 0;
  for await (const bytes of readChunks(path)) {
    const bad = utf8.findProblem(bytes);
    if (bad) {
      // Scans up to the invalid byte, so that the problem gets its record, and stops.
      scanner.feed(bytes.subarray(0, Math.max(0, bad.at)));
      scanner.report(bad.reason, { isFatal: true });
      return scanner.result();
    }
    if (!scanner.feed(bytes)) return scanner.result();
    await options.onChunk?.(bytes, scanner.takeRecords(), scanner.start);
    offset += bytes.length;
    options.onBytes?.(offset, scanner.result());
  }
  if (!utf8.isComplete) scanner.report(NOT_UTF8, { isFatal: true });
  scanner.end();
  await options.onChunk?.(Buffer.alloc(0), scanner.takeRecords(), scanner.start);
  return scanner.result();
}

/** Reads each chunk into the same memory: as garbage, chunks of new memory take 20 to 35 MB before they are collected. */
async function* readChunks(path: string): AsyncGenerator<Buffer> {
  const file = await open(path);
  try {
    const memory = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(memory, 0, memory.length);
      if (bytesRead === 0) return;
      yield memory.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
