import { Readable } from 'node:stream';
import { and, asc, count, eq, gt, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { parts } from '../../shared/database/schema.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { checkPartSize, readPart } from './read-part.ts';

/** One file of an upload. */
export interface UploadedFile {
  file: number;
  parts: number;
  /** Bytes of all its parts. */
  size: number;
}

/** Parts are listed in pages, because the client chooses their number. */
const PAGE = 500;

/** Of a part: its object, and what it is compared with. */
const COLUMNS = {
  part: parts.part,
  object: parts.object,
  size: parts.size,
  digest: parts.digest,
};

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

/** The object of a file that has a single part. Throws DamagedPart if it has another size than arrived. */
export async function findSinglePart(
  { db, objects }: { db: Tx; objects: ObjectStore },
  { upload, file }: { upload: string; file: number },
): Promise<string> {
  const [row] = await db
    .select(COLUMNS)
    .from(parts)
    .where(and(eq(parts.upload, upload), eq(parts.file, file)));
  if (!row) throw new Error(`upload ${upload} has no file ${file}`);
  await checkPartSize(objects, row);
  return row.object;
}

/** Streams a file: its parts in order. Fails as readPart() does. */
export function readUploadedFile(
  { db, objects }: { db: Tx; objects: ObjectStore },
  options: { upload: string; file: number; signal: AbortSignal; onBytes?(read: number): void },
): Readable {
  const { upload, file, signal, onBytes } = options;
  let read = 0;
  async function* readParts(): AsyncGenerator<Buffer> {
    for (let after = -1; ; ) {
      const page = await db
        .select(COLUMNS)
        .from(parts)
        .where(and(eq(parts.upload, upload), eq(parts.file, file), gt(parts.part, after)))
        .orderBy(asc(parts.part))
        .limit(PAGE);
      for (const row of page) {
        for await (const piece of readPart(objects, row, signal)) {
          read += piece.length;
          onBytes?.(read);
          yield piece;
        }
        after = row.part;
      }
      if (page.length < PAGE) return;
    }
  }
  return Readable.from(readParts(), { objectMode: false });
}
