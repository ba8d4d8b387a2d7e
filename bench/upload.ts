/**
 * `npm run bench:upload`: compares uploads of 200 MB with other servers, and their parse with other readers of CSV, in
 * the same run and value by value. Fails if a ratio misses its target in docs/performance.md. Arguments select parts:
 * parts, tall, wide, growth.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { startStack } from '../servers/stack.ts';
import { makeDirectories, readParts } from './prepare.ts';
import { compareParts } from './upload/compare-parts.ts';
import { compareTables } from './upload/compare-tables.ts';
import { TALL, WIDE } from './upload/csv-files.ts';
import { measureGrowth } from './upload/measure-growth.ts';

const FILE_BYTES = 200e6;

const isWanted = readParts(['parts', 'tall', 'wide', 'growth']);

const { directory } = makeDirectories();
const stack = await startStack({
  directory,
  environment: { PATH: process.env.PATH },
  settings: { LIMIT_REQUESTS: '0' },
});
const { client } = stack;

try {
  const results = [
    ...(isWanted('parts')
      ? await compareParts({ client, directory, file: randomBytes(FILE_BYTES) })
      : []),
    ...(isWanted('tall') ? await compareTables({ client, directory, shape: TALL }) : []),
    ...(isWanted('wide') ? await compareTables({ client, directory, shape: WIDE }) : []),
    ...(isWanted('growth') ? [await measureGrowth({ client, directory })] : []),
  ];
  process.exitCode = results.every(result => result.passed) ? 0 : 1;
} finally {
  await stack.stop();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
