import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { removeExpiredStreamedOutput } from '../../workers/upkeep/expired-streamed-output.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('streamed');

async function insertStreamed(): Promise<string> {
  const { sql } = given.database();
  const id = newId();
  await sql`insert into jobs (id, kind, queue, owner, payload, state, finished, output_streamed, stdout_bytes)
    values (${id}, 'command', 'remote', 'u', '{}', 'succeeded', now() - interval '2 hours', true, 2)`;
  await sql`insert into job_chunks (job, seq, stream, start, bytes) values (${id}, 0, 0, 0, 'ok')`;
  return id;
}

const chunksOf = (id: string) => given.database().sql`select 1 from job_chunks where job = ${id}`;

test('output that was streamed goes an hour after the end of its job', async () => {
  const id = await insertStreamed();
  await removeExpiredStreamedOutput({ database: given.database() });
  expect(await chunksOf(id)).toHaveLength(0);
  const [row] = await given.database().sql`select stdout_bytes::int from jobs where id = ${id}`;
  expect(row).toEqual({ stdout_bytes: 0 });
});

test('streamed output expires while the record of its job is removed', async () => {
  const database = given.database();
  const id = await insertStreamed();
  const expiring = await database.db.transaction(async tx => {
    await tx.execute(sql`select 1 from jobs where id = ${id} for update`);
    const expiring = removeExpiredStreamedOutput({ database });
    expiring.catch(() => {});
    await untilLocked(database.db);
    expect(await removeJobs(tx, [id])).toEqual([id]);
    return { done: expiring };
  });
  await expiring.done;
  expect(await chunksOf(id)).toHaveLength(0);
});
