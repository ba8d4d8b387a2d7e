import { join } from 'node:path';
import type { FileParserName } from '../../shared/uploads/parsers.ts';
import { storeScratch, withScratch, writeScratch } from '../sandbox/scratch-dir.ts';
import type { MadeArtifact, Parser } from './parser.ts';
import { TableError } from './table/protocol.ts';
import { runTableChild } from './table/run-child.ts';
import { readUploadedFile } from './upload-files.ts';

/** Progress after the file was copied to the worker, and after its conversion. */
const COPIED = 0.15;
const CONVERTED = 0.9;
/** Characters of an artifact's name. */
const MAX_NAME = 255;

/**
 * A parser that makes the child read a file, and stores the result. Copies the file to the worker's disk first: formats
 * need random access, and CSV three passes.
 */
export const convertFile =
  (parser: FileParserName): Parser<FileParserName> =>
  async ({ file, size }, context) => {
    const { job, upload, aid, newKey, reportProgress, parameters } = context;
    const { objects, database, config } = job.worker;
    return withScratch('parse', async scratch => {
      const input = join(scratch, 'upload');
      const output = join(scratch, 'table.parquet');
      const bytes = readUploadedFile(
        { db: database.db, objects },
        { upload, file, signal: job.signal },
      );
      const keepFree = config.LIMIT_FREE_BYTES;
      const copied = writeScratch(input, bytes, { signal: job.signal, keepFree, size }).then(() =>
        reportProgress(COPIED, `Reading ${size} bytes.`),
      );
      const reading = runTableChild(
        {
          kind: 'file',
          parser,
          parameters,
          scratch,
          input,
          output,
          expanded: config.LIMIT_EXPANDED_BYTES,
        },
        {
          memory: config.LIMIT_PARSE_BYTES,
          seconds: config.LIMIT_PARSE_SECONDS,
          keepFree,
          input: copied,
          onProgress: share => reportProgress(COPIED + share * (CONVERTED - COPIED)),
          signal: job.signal,
        },
      );
      const [made] = await Promise.all([reading, copied]);
      const artifacts: MadeArtifact[] = [];
      for (const { name } of made) checkName(name ? `${aid}/${name}` : aid);
      for (const { name, path, ...artifact } of made) {
        const object = newKey();
        const written = { path, within: scratch, signal: job.signal };
        const stored = await storeScratch(objects, object, written);
        artifacts.push({ ...artifact, aid: name ? `${aid}/${name}` : aid, object, size: stored });
      }
      return artifacts;
    });
  };

/** Throws TableError for a name that no path of the API has. */
function checkName(aid: string): void {
  if (aid.length <= MAX_NAME && !/[\p{Cc}\p{Surrogate}]/u.test(aid)) return;
  throw new TableError({
    reason: `the artifact ${JSON.stringify(aid.slice(0, 100))} would have a name that is longer than ${MAX_NAME} characters or not one line of Unicode`,
    hint: 'Choose a shorter name in "aids", or rename what is in the file.',
  });
}
