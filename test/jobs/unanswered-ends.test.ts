import { eq, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { openDatabase, type Tx } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { jobs } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import { createLog } from '../../shared/process/log.ts';
import { chargeUserStorage } from '../../shared/quotas/user-storage.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import type { Handler } from '../../workers/context.ts';
import { HeldClaims } from '../../workers/engine/held-claims.ts';
import { runJob } from '../../workers/engine/run-job.ts';
import { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { waitFor } from '../harness/wait-for.ts';
import { makeWorkerContext } from '../harness/worker-context.ts';

const given = withDatabase('unanswered-ends');
/** The commits of ends wait for whoever holds this advisory lock. */
const GATE = 42;

test('a video that fits the limit is kept, although its end is written twice where the answer is lost', async () => {
  const direct = given.database();
  await direct.sql.unsafe(`
    create function wait_at_commit() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(${GATE}); return null; end $$;
    create constraint trigger wait_at_commit after update of finished on jobs
      deferrable initially deferred for each row when (new.finished is not null)
      execute function wait_at_commit()`);
  const { hostname: host, port } = new URL(given.url);
  const proxy = await startTcpProxy({ host, port: Number(port) });
  const proxied = new URL(given.url);
  proxied.host = `${proxy.host}:${proxy.port}`;
  const database = openDatabase(proxied.href);
  const log = createLog({ level: 'silent', name: 'test' });
  const notifications = new Notifications(direct, log);
  const metrics = new WorkerMetrics();
  // Leases are renewed beside what is cut.
  const claims = new HeldClaims({ id: 'w', database: direct, notifications, log, metrics });
  try {
    const objects = new FileStore(given.path);
    const [id, user] = [newId(), newId()];
    const object = `videos/${id}/${newId()}`;
    const payload = { type: 'video/mp4', images: ['/a.png'], fps: 25 };
    await direct.db
      .insert(jobs)
      .values({ id, kind: 'video', queue: 'video', session: 's', owner: user, payload });
    const video = async () => {
      const bytes = await objects.put(object, Buffer.alloc(60));
      return {
        result: { object, type: 'video/mp4', bytes, stored: bytes, frames: 1, encoded: 'worker' },
        promote: (tx: Tx) => chargeUserStorage(tx, { user, added: bytes, limit: 100 }),
        stored: [object],
      };
    };
    const worker = makeWorkerContext({
      id: 'w',
      log,
      notifications,
      claims,
      metrics,
      database,
      objects,
    });
    let running: Promise<boolean> | undefined;
    await direct.db.transaction(async tx => {
      await tx.execute(sql`select pg_advisory_xact_lock(${GATE})`);
      running = runJob(worker, { id, epoch: 0 }, new Map([['video', video as Handler<JobKind>]]));
      await untilLocked(direct.db);
      proxy.cut();
      await waitFor(
        async () => {
          const [row] = await direct.sql`select count(*)::int as n from pg_stat_activity
            where wait_event_type = 'Lock'`;
          return row?.n === 2;
        },
        { what: 'the second try to wait for the first' },
      );
    });
    await running;
    const [row] = await direct.db.select().from(jobs).where(eq(jobs.id, id));
    expect(row).toMatchObject({ state: 'succeeded', result: { object } });
    expect(await objects.stat(object)).toMatchObject({ size: 60 });
  } finally {
    claims.stop();
    await database.close();
    await proxy.stop();
  }
});
