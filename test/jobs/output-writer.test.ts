import { once } from 'node:events';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import type { Database, Tx } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { readOutputStream } from '../../shared/jobs/read-output.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { OutputWriter } from '../../workers/output/output-writer.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('output-writer');
let database: Database;

beforeAll(() => {
  database = given.database();
});

async function claimedJob(): Promise<{ id: string; token: string }> {
  const claim = { id: newId(), token: newId() };
  await database.db.insert(jobs).values({
    id: claim.id,
    leaseToken: claim.token,
    kind: 'command',
    queue: 'remote',
    owner: 'u',
    payload: { command: 'true' },
    state: 'running',
  });
  return claim;
}

test('bytes appended during a commit, or right after it, are stored too', async () => {
  // The append comes this many microtasks after the commit.
  for (let later = 0; later < 20; later++) {
    const claim = await claimedJob();
    const appended: Promise<void>[] = [];
    const writer = await OutputWriter.open(
      {
        database,
        objects: new FileStore(join(given.path, 'objects')),
        over: new AbortController().signal,
        onStored: () => {
          if (appended.length === 0) appended.push(appendLater());
        },
      },
      claim,
      { stdout: 0, stderr: 0 },
    );
    const appendLater = async () => {
      for (let settled = 0; settled < later; settled++) await null;
      await writer.append('stdout', Buffer.from('second'));
    };
    await writer.append('stdout', Buffer.from('first '));
    await expect.poll(() => appended.length).toBe(1);
    await Promise.all(appended);
    await writer.flush();
    const [row] = await database.db
      .select({ stored: jobs.stdoutBytes })
      .from(jobs)
      .where(eq(jobs.id, claim.id));
    expect([later, row?.stored]).toEqual([later, 12]);
  }
});

test('output is read whole after a roll-up and a large batch that follows it', async () => {
  const claim = await claimedJob();
  const objects = new FileStore(join(given.path, 'objects'));
  const over = new AbortController().signal;
  const writer = await OutputWriter.open({ database, objects, over, onStored: () => {} }, claim, {
    stdout: 0,
    stderr: 0,
  });
  // The last of them starts a roll-up, which takes as many rows as one object may have: fewer bytes than it may have.
  const parts = Array.from({ length: 1_399 }, (_, n) => Buffer.alloc(3_000, `${n} `));
  const burst = Buffer.alloc(2 << 20, 'burst ');
  for (const part of [...parts, burst]) {
    await writer.append('stdout', part);
    await writer.flush();
  }
  const whole = Buffer.concat([...parts, burst]);
  const read: Buffer[] = [];
  for await (const bytes of readOutputStream({ db: database.db, objects }, claim.id, {
    stream: 'stdout',
    from: 0,
    until: whole.length,
  }))
    read.push(bytes);
  expect(Buffer.concat(read).equals(whole)).toBe(true);
});

test('a batch whose commit lost its answer is stored once', async () => {
  const claim = await claimedJob();
  const objects = new FileStore(join(given.path, 'objects'));
  const { db } = database;
  const hold = new AbortController();
  let first: Promise<void> | undefined;
  // The server commits long after the connection broke, and meanwhile the writer tries again.
  const brokenOnce = Object.create(db, {
    transaction: {
      value: async (write: (tx: Tx) => Promise<void>) => {
        if (first) return db.transaction(write);
        await new Promise<void>(written => {
          first = db.transaction(async tx => {
            await write(tx);
            written();
            await once(hold.signal, 'abort');
          });
        });
        throw Object.assign(new Error('cut'), { code: 'CONNECTION_CLOSED' });
      },
    },
  });
  const writer = await OutputWriter.open(
    {
      database: { ...database, db: brokenOnce },
      objects,
      over: new AbortController().signal,
      onStored: () => {},
    },
    claim,
    { stdout: 0, stderr: 0 },
  );
  await writer.append('stdout', Buffer.from('once '));
  await untilLocked(db);
  hold.abort();
  await writer.append('stdout', Buffer.from('and more'));
  await writer.flush();
  await first;
  const read: Buffer[] = [];
  const range = { stream: 'stdout', from: 0, until: writer.stored.stdout } as const;
  for await (const bytes of readOutputStream({ db, objects }, claim.id, range)) read.push(bytes);
  expect(String(Buffer.concat(read))).toBe('once and more');
});
