import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { withScratch, writeScratch } from '../sandbox/scratch-dir.ts';
import { skipPreamble } from './csv/skip-preamble.ts';
import type { Parser } from './parser.ts';
import { readFileOf } from './read-parts.ts';
import { TableError } from './table/protocol.ts';
import { runTableChild } from './table/run-child.ts';

/** Shares of the time: the file comes, is read by the child, goes. */
const BROUGHT = 0.15;
const MADE = 0.9;

/**
 * Each file a table, as Parquet. The file is brought onto the worker's disk first: it is read three times (to check it,
 * for its types, for its values), which a pipe does not allow.
 */
const csv: Parser<'csv'> = async ({ file, size }, context) => {
  const { job, upload, aid, newKey, tell, parameters } = context;
  const { objects, database, config } = job.worker;
  return withScratch('parse', async scratch => {
    const input = join(scratch, 'table.csv');
    const output = join(scratch, 'table.parquet');
    const bytes = readFileOf({ db: database.db, objects }, { upload, file, signal: job.signal });
    const preamble = { lines: 0 };
    await writeScratch(input, Readable.from(skipPreamble(bytes, preamble)), job.signal);
    tell(BROUGHT, `Reading ${size} bytes.`);
    const made = await runTableChild(
      { kind: 'csv', scratch, input, output, parameters },
      {
        memory: config.LIMIT_PARSE_BYTES,
        seconds: config.LIMIT_PARSE_SECONDS,
        onProgress: share => tell(BROUGHT + share * (MADE - BROUGHT)),
        signal: job.signal,
      },
    ).catch((error: unknown) => {
      if (error instanceof TableError)
        for (const problem of error.problems)
          if (problem.row !== undefined) problem.row += preamble.lines;
      throw error;
    });
    const object = newKey();
    const stored = (await stat(output)).size;
    await objects.put(object, createReadStream(output), { size: stored, signal: job.signal });
    return [{ aid, kind: 'table', object, size: stored, ...made }];
  });
};

export default csv;
