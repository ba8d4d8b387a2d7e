import { eq } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { SUPPORTED_VERSIONS } from '../../shared/jobs/payload-versions.ts';
import { startJob } from '../../shared/jobs/start-job.ts';
import { startJobInSession } from '../../shared/jobs/start-job-in-session.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('started-both-ways');

test('a job has the same row and the same audit, whether one statement starts it or several', async () => {
  const database = given.database();
  const { db, sql } = database;
  const sid = newId();
  const used = { opened: new Date(), accessed: new Date() };
  await db
    .insert(sessions)
    .values({ sid, owner: 'u', hostname: 'h', username: 'a', agent: true, ...used });
  const slots = JSON.stringify({ remote: 8 });
  await sql`insert into workers (id, host, pid, slots, understands, seen)
    values ('w', 'host', 1, ${slots}::jsonb, ${JSON.stringify(SUPPORTED_VERSIONS)}::jsonb, 'infinity')`;
  const request = (requestId: string) => ({
    kind: 'command' as const,
    payload: { command: 'true' },
    owner: 'u',
    session: sid,
    name: 'mine',
    requestId,
    address: '192.0.2.1',
    limit: 9,
    share: 0.5,
  });
  const read = async (id: string | undefined, requestId: string) => {
    const [row] = await db
      .select()
      .from(jobs)
      .where(eq(jobs.id, id ?? ''));
    const audit =
      await sql`select username, address, action, target from audit_pending where request_id = ${requestId}`;
    const { created, dispatched } = row ?? {};
    const isDispatched = dispatched?.getTime() === created?.getTime();
    return {
      row: { ...row, id: '', requestId: '', created: 0, dispatched: isDispatched },
      audit: [...audit],
    };
  };
  const one = await startJobInSession(database, request('one'), 900);
  const several = await db.transaction(tx => startJob(tx, request('several')));
  expect(await read(one?.id, 'one')).toEqual(await read(several.id, 'several'));
  const { id, requestId, created, dispatched, ...answered } = several;
  expect(one).toMatchObject(answered);
  expect(Object.keys(one ?? {}).sort()).toEqual(Object.keys(several).sort());
});
