import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { OutputReads } from '../api/jobs/output-reads.ts';
import type { Database } from '../shared/database/connect.ts';
import { chunks } from '../shared/database/schema.ts';
import { newId } from '../shared/ids.ts';
import { FileStore } from '../shared/storage/file-store.ts';
import { withDatabase } from './harness/migrated-database.ts';

const given = withDatabase('output-reads');
let database: Database;

beforeAll(() => {
  database = given.database();
});

test('clients that read slowly, but read, keep nobody from a turn', async () => {
  const length = 4 << 20;
  const job = newId();
  const bytes = Buffer.alloc(length / 4, 'x');
  await database.db
    .insert(chunks)
    .values([0, 1, 2, 3].map(n => ({ job, seq: n, stream: 1, start: n * bytes.length, bytes })));
  const objects = new FileStore(join(given.path, 'objects'));
  const reads = new OutputReads({ db: database.db, objects });
  const until = { stdout: length, stderr: 0 };
  let over = false;
  /** As a feed reads for a client, again and again until all of it was sent; how much that was. */
  const follow = async (pause: () => Promise<unknown> | undefined) => {
    let at = { stdout: 0, stderr: 0 };
    for (let whole = false; !whole && !over; )
      whole = await reads.readLong(job, { span: { from: at, until }, complete: true }, async f => {
        at = f.at;
        await pause();
        return !over;
      });
    return at.stdout;
  };
  const slow = Array.from({ length: 20 }, () => follow(() => delay(50)));
  expect(await follow(() => undefined)).toBe(length);
  over = true;
  for (const sent of await Promise.all(slow)) expect(sent).toBeLessThan(length);
});
