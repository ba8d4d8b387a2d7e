import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import type { OutputFrame } from '../../api/jobs/streaming/event-frames.ts';
import { OutputReader } from '../../api/jobs/streaming/output-reader.ts';
import type { Database } from '../../shared/database/connect.ts';
import { chunks } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('output-reads');
const MIB = 1 << 20;
let database: Database;
let objects: FileStore;

beforeAll(() => {
  database = given.database();
  objects = new FileStore(join(given.path, 'objects'));
});

/** Stores a job's output of `mebibytes` MiB in the database. */
async function storeSome(mebibytes: number): Promise<string> {
  const job = newId();
  const bytes = Buffer.alloc(MIB, 'x');
  for (let seq = 0; seq < mebibytes; seq++)
    await database.db
      .insert(chunks)
      .values({ job, seq, stream: 1, start: seq * bytes.length, bytes });
  return job;
}

test('a user who has many clients leaves turns to others, without end', async () => {
  const job = await storeSome(1);
  const reads = new OutputReader({ db: database.db, objects });
  const span = { from: { stdout: 0, stderr: 0 }, until: { stdout: MIB, stderr: 0 } };
  const read = (owner: string, take: () => boolean | Promise<boolean>) =>
    reads.readLarge(
      { id: job, owner },
      { range: span, complete: true },
      { write: take, closed: false },
    );
  let release: (goesOn: boolean) => void = () => {};
  const over = new Promise<boolean>(resolve => {
    release = resolve;
  });
  const many = Array.from({ length: 40 }, () => read('many', () => over));
  expect(await read('other', () => true)).toBe(true);
  release(false);
  expect(new Set(await Promise.all(many))).toEqual(new Set([false]));
});

test('clients that read slowly, but read, keep nobody from a turn', async () => {
  const length = 4 * MIB;
  const job = await storeSome(4);
  const reads = new OutputReader({ db: database.db, objects });
  const until = { stdout: length, stderr: 0 };
  let over = false;
  /** Reads as a feed does for a client, again and again until all of it was sent; how much that was. */
  const follow = async (owner: string, pause: () => Promise<unknown> | undefined) => {
    let at = { stdout: 0, stderr: 0 };
    const sink = {
      write: async (frame: OutputFrame) => {
        at = frame.at;
        await pause();
        return !over;
      },
      closed: false,
    };
    for (let whole = false; !whole && !over; )
      whole = await reads.readLarge(
        { id: job, owner },
        { range: { from: at, until }, complete: true },
        sink,
      );
    return at.stdout;
  };
  const slow = Array.from({ length: 20 }, () => follow('slow', () => delay(50)));
  for (const owner of ['slow', 'other']) expect(await follow(owner, () => undefined)).toBe(length);
  over = true;
  for (const sent of await Promise.all(slow)) expect(sent).toBeLessThan(length);
});
