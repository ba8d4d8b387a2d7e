import { join } from 'node:path';
import { Readable } from 'node:stream';
import { storeScratch, withScratch, writeScratch } from '../sandbox/scratch-dir.ts';
import { stripLeadingBlanks } from './csv/strip-leading-blanks.ts';
import type { Parser } from './parser.ts';
import { TableError } from './table/protocol.ts';
import { runTableChild } from './table/run-child.ts';
import { readUploadedFile } from './upload-files.ts';

/** Progress after the file has been copied to the worker, and after it has been converted. */
const COPIED = 0.15;
const CONVERTED = 0.9;

/**
 * Converts each file to a table in Parquet. Copies the file to the worker's disk first, because it is read three times:
 * for errors, for the types and for the values.
 */
const csv: Parser<'csv'> = async ({ file, size }, context) => {
  const { job, upload, aid, newKey, reportProgress, parameters } = context;
  const { objects, database, config } = job.worker;
  return withScratch('parse', async scratch => {
    const input = join(scratch, 'table.csv');
    const output = join(scratch, 'table.parquet');
    const bytes = readUploadedFile(
      { db: database.db, objects },
      { upload, file, signal: job.signal },
    );
    const stripped = { lines: 0 };
    await writeScratch(input, Readable.from(stripLeadingBlanks(bytes, stripped)), job.signal);
    reportProgress(COPIED, `Reading ${size} bytes.`);
    const made = await runTableChild(
      { kind: 'csv', scratch, input, output, parameters },
      {
        memory: config.LIMIT_PARSE_BYTES,
        seconds: config.LIMIT_PARSE_SECONDS,
        keepFree: config.LIMIT_FREE_BYTES,
        onProgress: share => reportProgress(COPIED + share * (CONVERTED - COPIED)),
        signal: job.signal,
      },
    ).catch((error: unknown) => {
      if (error instanceof TableError)
        for (const problem of error.problems)
          if (problem.row !== undefined) problem.row += stripped.lines;
      throw error;
    });
    const object = newKey();
    const stored = await storeScratch(objects, object, { path: output, signal: job.signal });
    return [{ aid, kind: 'table', object, size: stored, ...made }];
  });
};

export default csv;
