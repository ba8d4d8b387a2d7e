import { createHash, type Hash } from 'node:crypto';
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { parts } from '../../shared/database/schema.ts';
import type { Result } from '../../shared/jobs/catalog.ts';

interface ReadFile {
  size: number;
  /** Sizes in bytes, each with the number of successive parts that have it. */
  runs: [number, number][];
  /** The hash of the parts' digests. */
  hash: Hash;
}

export type SentFile = Result<'parse'>['files'][number];

const PAGE = 5_000;
/** Limit of runs of all files together, which bounds the job's record. Our clients' files have parts of few sizes. */
const MAX_RUNS = 10_000;

/** Describes an upload's files after its parts are gone, so that a client can tell whether it has the same ones. */
export async function describeSentFiles(db: Tx, upload: string): Promise<SentFile[]> {
  const files: ReadFile[] = [];
  let after = { file: -1, part: -1 };
  for (;;) {
    const page = await db
      .select({ file: parts.file, part: parts.part, size: parts.size, digest: parts.digest })
      .from(parts)
      .where(
        and(
          eq(parts.upload, upload),
          // As rows they are compared by the index.
          sql`(${parts.file}, ${parts.part}) > (${after.file}, ${after.part})`,
        ),
      )
      .orderBy(asc(parts.file), asc(parts.part))
      .limit(PAGE);
    for (const { file, part, size, digest } of page) {
      files[file] ??= { size: 0, runs: [], hash: createHash('sha256') };
      const sent = files[file];
      sent.size += size;
      sent.hash.update(Buffer.from(digest, 'base64'));
      const run = sent.runs.at(-1);
      if (run?.[0] === size) run[1]++;
      else sent.runs.push([size, 1]);
      after = { file, part };
    }
    if (page.length < PAGE) return tellFiles(files);
  }
}

export function tellFiles(files: ReadFile[]): SentFile[] {
  let told = 0;
  return files.map(({ size, runs, hash }) => {
    told += runs.length;
    if (told > MAX_RUNS) return { size };
    return { size, parts: { sizes: runs, digest: hash.digest('base64') } };
  });
}
