import { join } from 'node:path';
import { asc, eq, sql } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../shared/database/connect.ts';
import { chunks, jobs, segments } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { type OutputStream, streamNumber } from '../../shared/jobs/output.ts';
import { readOutput, readOutputStream } from '../../shared/jobs/read-output.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { OutputWriter } from '../../workers/output/output-writer.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

/** Lines of a command that prints for hours, each stored as it came. */
const PART = Buffer.alloc(20_000, 'line ');
/** More than one object is made of. */
const PARTS = 300;

const folder = withDatabase('output-rollup');
let database: Database;

beforeAll(() => {
  database = folder.database();
});

test('a roll-up leaves no chunk row of the objects that it writes', async () => {
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
  const writer = await OutputWriter.open(
    {
      database,
      objects: new FileStore(join(folder.path, 'objects')),
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

test('many short rows are rolled up too, and the attempt that follows goes on with it', async () => {
  const { db } = database;
  const claim = { id: newId(), token: newId() };
  const given = {
    id: claim.id,
    leaseToken: claim.token,
    kind: 'command',
    queue: 'remote',
  } as const;
  await db
    .insert(jobs)
    .values({ ...given, owner: 'u', payload: { command: 'true' }, state: 'running' });
  // An earlier attempt left 2,500 lines of one byte each.
  await db.execute(sql`insert into job_chunks (job, seq, stream, start, bytes)
    select ${claim.id}, n, 1, n, 'x' from generate_series(0, 2499) n`);
  await db.update(jobs).set({ stdoutBytes: 2_500 }).where(eq(jobs.id, claim.id));
  const over = new AbortController().signal;
  const objects = new FileStore(join(folder.path, 'objects'));
  const context = { database, objects, over, onStored: () => {} };
  const writer = await OutputWriter.open(context, claim, { stdout: 2_500, stderr: 0 });
  await writer.append('stdout', Buffer.from('the end'));
  await writer.flush();
  const rolledUp = await db.select().from(segments).where(eq(segments.job, claim.id));
  expect(rolledUp.map(({ length }) => length)).toEqual([1_000, 1_000]);
  expect(await db.$count(chunks, eq(chunks.job, claim.id))).toBe(501);
  const read: Buffer[] = [];
  const range = { stream: 'stdout', from: 0, until: 2_507 } as const;
  for await (const bytes of readOutputStream({ db, objects }, claim.id, range)) read.push(bytes);
  expect(String(Buffer.concat(read))).toBe(`${'x'.repeat(2_500)}the end`);
});

test('both streams come in the order in which they were stored, rolled up or not', async () => {
  const { db } = database;
  const claim = { id: newId(), token: newId() };
  const written: Turn[] = [];
  const end = { stdout: 0, stderr: 0 };
  const rows: (typeof chunks.$inferInsert)[] = [];
  const note = (stream: OutputStream, text: string) => {
    addTo(written, stream, text);
    end[stream] += text.length;
  };
  const leave = (stream: OutputStream, text: string) => {
    const place = { job: claim.id, stream: streamNumber(stream), start: end[stream] };
    rows.push({ ...place, seq: rows.length, bytes: Buffer.from(text) });
    note(stream, text);
  };
  // An earlier attempt left rows that are rolled up now, but for the last ones of each stream.
  for (let n = 0; n < 1_100; n++) {
    leave('stdout', `${n}\n`);
    if (n % 16 !== 1) leave('stderr', `at ${n}\n`);
  }
  await db.insert(jobs).values({
    id: claim.id,
    leaseToken: claim.token,
    kind: 'command',
    queue: 'remote',
    owner: 'u',
    payload: { command: 'true' },
    state: 'running',
    stdoutBytes: end.stdout,
    stderrBytes: end.stderr,
  });
  await db.insert(chunks).values(rows);
  const over = new AbortController().signal;
  const objects = new FileStore(join(folder.path, 'objects'));
  const context = { database, objects, over, onStored: () => {} };
  const writer = await OutputWriter.open(context, claim, { ...end });
  const write = async (stream: OutputStream, text: string) => {
    note(stream, text);
    await writer.append(stream, Buffer.from(text));
    await writer.flush();
  };
  await write('stdout', 'goes on\n');
  await write('stderr', 'too\n');
  // By the MiB, into an object of its own.
  await write('stderr', 'x'.repeat(2 << 20));
  await write('stdout', 'the end\n');
  expect(await db.$count(segments, eq(segments.job, claim.id))).toBe(3);
  expect(await db.$count(chunks, eq(chunks.job, claim.id))).toBeGreaterThan(50);
  const from = { stdout: 0, stderr: 0 };
  const read: Turn[] = [];
  const span = { from, until: writer.stored };
  for await (const piece of readOutput({ db, objects }, claim.id, span))
    addTo(read, piece.stream, String(piece.bytes));
  expect(read).toEqual(written);
});

/** What one stream had before the other was written again. */
type Turn = { stream: OutputStream; text: string };

function addTo(turns: Turn[], stream: OutputStream, text: string): void {
  const last = turns.at(-1);
  if (last?.stream === stream) last.text += text;
  else turns.push({ stream, text });
}
