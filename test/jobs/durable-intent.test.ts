import { expect, test } from 'vitest';
import { openDatabase } from '../../shared/database/connect.ts';
import { newId } from '../../shared/ids.ts';
import { updateLeased } from '../../workers/engine/leased-updates.ts';
import { claimJob } from '../harness/claim-job.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('durable');

test('run_at waits for a synchronous standby, whatever the role has set; a claim does not', async () => {
  const { sql } = given.database();
  await sql.unsafe('alter role current_user set synchronous_commit = off');
  const worker = openDatabase(given.url, { max: 1 });
  const [id, token] = [newId(), newId()];
  await sql`insert into jobs (id, kind, queue, owner, payload, epoch, dispatched)
    values (${id}, 'command', 'remote', 'alice', '{"command":"true"}', 1, now())`;
  // A standby that is not there: whoever waits for it waits until it is no longer asked for.
  const askFor = async (standby: string) => {
    await sql.unsafe(`alter system set synchronous_standby_names = '${standby}'`).catch(() => {});
    await sql`select pg_reload_conf()`;
  };
  await askFor('absent');
  try {
    await waitFor(
      async () => (await sql`show synchronous_standby_names`)[0]?.synchronous_standby_names,
      { what: 'the setting' },
    );
    expect(await claimJob(worker.db, { id, epoch: 1 }, { worker: 'w', token })).toBeDefined();
    await updateLeased(worker.db, { id, token }, { consecutiveLosses: 0 });
    let isCommitted = false;
    const promise = updateLeased(worker.db, { id, token }, { runAt: new Date() }).then(() => {
      isCommitted = true;
    });
    await waitFor(
      async () =>
        (await sql`select 1 from pg_stat_activity where wait_event = 'SyncRep'`).length > 0,
      { what: 'the commit to wait for the standby' },
    );
    expect(isCommitted).toBe(false);
    await askFor('');
    await promise;
  } finally {
    await askFor('');
    await worker.close();
  }
});
