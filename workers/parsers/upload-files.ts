import { Readable } from 'node:stream';
import { and, asc, count, eq, gt, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { parts } from '../../shared/database/schema.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';

/** One file of an upload. */
export interface UploadedFile {
  file: number;
  parts: number;
  /** Bytes of all its parts. */
  size: number;
}

/** Parts are listed in pages, because the client chooses their number. */
const PAGE = 500;

export async function listUploadedFiles(db: Tx, upload: string): Promise<UploadedFile[]> {
  return db
    .select({
      file: parts.file,
      parts: count(),
      size: sql<string>`sum(${parts.size})`.mapWith(Number),
    })
    .from(parts)
    .where(eq(parts.upload, upload))
    .groupBy(parts.file)
    .orderBy(asc(parts.file));
}

/** The object of a file that has a single part. */
export async function findSinglePart(db: Tx, upload: string, file: number): Promise<string> {
  const [row] = await db
    .select({ object: parts.object })
    .from(parts)
    .where(and(eq(parts.upload, upload), eq(parts.file, file)));
  if (!row) throw new Error(`upload ${upload} has no file ${file}`);
  return row.object;
}

/** Streams a file: its parts in order. */
export function readUploadedFile(
  { db, objects }: { db: Tx; objects: ObjectStore },
  options: { upload: string; file: number; signal: AbortSignal; onBytes?(read: number): void },
): Readable {
  const { upload, file, signal, onBytes } = options;
  let read = 0;
  async function* readParts(): AsyncGenerator<Buffer> {
    for (let after = -1; ; ) {
      const page = await db
        .select({ part: parts.part, object: parts.object })
        .from(parts)
        .where(and(eq(parts.upload, upload), eq(parts.file, file), gt(parts.part, after)))
        .orderBy(asc(parts.part))
        .limit(PAGE);
      for (const { part, object } of page) {
        for await (const piece of await objects.get(object, { signal })) {
          read += (piece as Buffer).length;
          onBytes?.(read);
          yield piece as Buffer;
        }
        after = part;
      }
      if (page.length < PAGE) return;
    }
  }
  return Readable.from(readParts(), { objectMode: false });
}
