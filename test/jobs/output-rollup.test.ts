import { join } from 'node:path';
import { asc, eq, sql } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../shared/database/connect.ts';
import { chunks, jobs, segments } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { OutputWriter } from '../../workers/output/output-writer.ts';
import { withDatabase } from '../harness/migrated-database.ts';

/** Lines of a command that prints for hours, each stored as it came. */
const PART = Buffer.alloc(20_000, 'line ');
/** More than one object is made of. */
const PARTS = 300;

const given = withDatabase('output-rollup');
let database: Database;

beforeAll(() => {
  database = given.database();
});

test('a roll-up leaves no chunk row of the objects that it writes', async () => {
  const { db } = database;
  const id = newId();
  const token = newId();
  await db.insert(jobs).values({
    ...{ id, leaseToken: token, kind: 'command', queue: 'remote', owner: 'u' },
    ...{ payload: { command: 'true' }, state: 'running' },
  });
  const writer = await OutputWriter.open(
    {
      database,
      objects: new FileStore(join(given.path, 'objects')),
      over: new AbortController().signal,
      onStored: () => {},
    },
    { id, token },
    { stdout: 0, stderr: 0 },
  );
  await writer.append('stderr', Buffer.from('of the other stream'));
  for (let n = 0; n < PARTS; n++) {
    await writer.append('stdout', PART);
    await writer.flush();
  }
  const objects = await db
    .select({ start: segments.start, length: segments.length })
    .from(segments)
    .where(eq(segments.job, id))
    .orderBy(asc(segments.start));
  const rows = await db
    .select({ stream: chunks.stream, start: chunks.start, length: sql<number>`length(bytes)` })
    .from(chunks)
    .where(eq(chunks.job, id))
    .orderBy(asc(chunks.stream), asc(chunks.start));
  expect(objects.length).toBeGreaterThan(0);
  const tail = rows.filter(({ stream }) => stream === 1);
  expect(tail.length).toBeGreaterThan(0);
  // Each byte is in one place: the objects come first, and the rows go on where they end.
  let end = 0;
  for (const { start, length } of [...objects, ...tail]) {
    expect(start).toBe(end);
    end += length;
  }
  expect(end).toBe(PARTS * PART.length);
  expect(rows.filter(({ stream }) => stream === 2)).toEqual([{ stream: 2, start: 0, length: 19 }]);
});
