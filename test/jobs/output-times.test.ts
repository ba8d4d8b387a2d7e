import { join } from 'node:path';
import { eq, sql } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../shared/database/connect.ts';
import { chunks, jobs, segments } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import type { OutputPiece } from '../../shared/jobs/output.ts';
import { readOutputTimes } from '../../shared/jobs/output-times.ts';
import { readOutput } from '../../shared/jobs/read-output.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { OutputWriter } from '../../workers/output/output-writer.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

/** The bytes of chunk rows that become an object. */
const ROLLED_UP = 4 << 20;
const PART = Buffer.alloc(100_000, 'line ');

const START = Date.parse('2026-11-01T10:00:00.250Z');
const timeOf = (hour: number) => new Date(START + hour * 3_600_000);

const given = withDatabase('output-times');
let database: Database;
let objects: FileStore;

beforeAll(() => {
  database = given.database();
  objects = new FileStore(join(given.path, 'objects'));
});

/** A job whose parts of output come an hour after one another, the first at START. */
async function writeHourly(parts: Buffer[]): Promise<string> {
  const { db } = database;
  const id = newId();
  const token = newId();
  await db.insert(jobs).values({
    id,
    leaseToken: token,
    kind: 'command',
    queue: 'remote',
    owner: 'u',
    payload: { command: 'true' },
    state: 'running',
  });
  const over = new AbortController().signal;
  const context = { database, objects, over, onStored: () => {} };
  const writer = await OutputWriter.open(context, { id, token }, { stdout: 0, stderr: 0 });
  for (const [hour, part] of parts.entries()) {
    const at = timeOf(hour).toISOString();
    await db.execute(sql.raw(`alter table job_chunks alter column at set default '${at}'`));
    await writer.append('stdout', part);
    await writer.flush();
  }
  return id;
}

async function timesOf(job: string) {
  const found = [];
  for await (const times of readOutputTimes(database.db, job, 'stdout')) found.push(...times);
  return found;
}

test('the times of output outlast the roll-up of its chunks, and come with its events', async () => {
  const count = Math.ceil((1.5 * ROLLED_UP) / PART.length);
  const job = await writeHourly(Array.from({ length: count }, () => PART));
  const rolledUp = await database.db.select().from(segments).where(eq(segments.job, job));
  expect(rolledUp.length).toBeGreaterThan(0);
  const found = await timesOf(job);
  const expected = Array.from({ length: count }, (_, part) => ({
    offset: part * PART.length,
    time: timeOf(part),
  }));
  expect(found).toEqual(expected);
  const pieces: OutputPiece[] = [];
  const range = {
    from: { stdout: 0, stderr: 0 },
    until: { stdout: count * PART.length, stderr: 0 },
  };
  for await (const piece of readOutput({ db: database.db, objects }, job, range))
    pieces.push(piece);
  for (const { offset, time } of pieces)
    expect(time).toEqual(timeOf(Math.floor(offset / PART.length)));
});

test('bytes that come by the MiB have the time at which they were stored', async () => {
  const before = Date.now();
  const job = await writeHourly([Buffer.from('first'), Buffer.alloc(3 << 20, 'x')]);
  expect(await database.db.$count(chunks, eq(chunks.job, job))).toBe(0);
  const found = await timesOf(job);
  expect(found).toEqual([
    { offset: 0, time: timeOf(0) },
    { offset: 5, time: expect.any(Date) },
  ]);
  expect(found[1]?.time.getTime()).toBeGreaterThan(before - 5_000);
});

test('many rows of one second count once; what 0.1.0 stored has no time', async () => {
  const { db } = database;
  const job = newId();
  const row = (start: number, at: Date | null) => ({ job, seq: start, stream: 1, start, at });
  const second = new Date('2026-11-23T10:00:05.100Z');
  const bytes = Buffer.from('x');
  await db
    .insert(chunks)
    .values([
      { ...row(0, null), bytes },
      ...Array.from({ length: 999 }, (_, n) => ({ ...row(n + 1, second), bytes })),
      { ...row(1_000, new Date('2026-11-23T10:00:06.000Z')), bytes },
    ]);
  expect(await timesOf(job)).toEqual([
    { offset: 1, time: second },
    { offset: 1_000, time: new Date('2026-11-23T10:00:06.000Z') },
  ]);
});
