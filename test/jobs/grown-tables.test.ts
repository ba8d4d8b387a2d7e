import { eq } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OpenJobCounts } from '../../api/jobs/requests/open-job-counts.ts';
import { findSession } from '../../api/remote/sessions.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { jobs } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { cancelJob, cancelJobsOf } from '../../shared/jobs/cancel.ts';
import { HAS_SLOT } from '../../shared/jobs/job-conditions.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { SUPPORTED_VERSIONS } from '../../shared/jobs/payload-versions.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { startJob } from '../../shared/jobs/start-job.ts';
import { startJobInSession } from '../../shared/jobs/start-job-in-session.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import type { Claim } from '../../workers/engine/claim.ts';
import { dispatchWaiting, type QueueTurn } from '../../workers/engine/dispatch-waiting.ts';
import { endJobs } from '../../workers/engine/end-jobs.ts';
import { readLeases, reclaimLeases } from '../../workers/engine/expired-leases.ts';
import { releaseJob, updateLeasedVisibly } from '../../workers/engine/leased-updates.ts';
import { renewLease } from '../../workers/engine/leases.ts';
import { unpark } from '../../workers/engine/park-unsupported.ts';
import { redispatchUnclaimed } from '../../workers/engine/redispatch-lost-entries.ts';
import { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import { purgeDeletedProjects } from '../../workers/upkeep/deleted-projects.ts';
import { findClaimedByOpenJobs } from '../../workers/upkeep/object-references.ts';
import { cancelJobsOfEndedSessions, endIdleSessions } from '../../workers/upkeep/sessions.ts';
import { isFull } from '../faults/settings.ts';
import { claimJob } from '../harness/claim-job.ts';
import { startTestPostgres, type TestPostgres } from '../harness/databases/postgres-server.ts';

/** Many times what a statement may read: a scan shows with these as with the millions of the long form. */
const ENDED = Number(process.env.GROWN_ENDED ?? (isFull ? 1_000_000 : 100_000));
const WAITING = isFull ? 100_000 : 10_000;
const SLOTS = 8;
/** Rows of jobs that a statement about one job may read, from the table and from all of its indexes. */
const FEW = 12;
/** What may be read for each place in the queue, and for what the test itself leaves behind. */
const SOME = 500;

interface Cost {
  /** Scans of the whole table. */
  scans: number;
  rows: number;
}

describe('on a table that has grown, after statistics that are older', () => {
  let server: TestPostgres;
  let database: Database;
  /** Without the programs' limits on what takes long. */
  let filler: postgres.Sql;
  let context: Parameters<typeof dispatchWaiting>[0] & Parameters<typeof reclaimLeases>[0];
  const session = newId();
  /** Last used long ago. */
  const other = newId();
  const log = createLog({ level: 'silent', name: 'test', secrets: [] });

  beforeAll(async () => {
    server = await startTestPostgres();
    const url = await server.createMigrated('grown');
    // One connection, whose plans are those of a process that was started with the empty table.
    database = openDatabase(url, { max: 1 });
    filler = postgres(url, { max: 1, onnotice: () => {} });
    const { sql } = database;
    await sql`alter system set autovacuum = off`;
    await sql`select pg_reload_conf()`;
    await sql`insert into sessions (sid, owner, hostname, username, agent, opened)
      values (${session}, 'carol', 'host', 'user', true, now())`;
    await sql`insert into sessions (sid, owner, hostname, username, agent, opened, accessed)
      values (${other}, 'carol', 'host', 'user', true, now(), now() - interval '1 day')`;
    await sql`insert into workers (id, host, pid, slots, understands, seen)
      values ('w', 'host', 1, ${JSON.stringify({ remote: SLOTS })}::jsonb, ${JSON.stringify(SUPPORTED_VERSIONS)}::jsonb, 'infinity')`;
    await sql`analyze`;
    context = {
      config: readConfig({}),
      database,
      log,
      metrics: new WorkerMetrics(),
      queues: new JobQueues({ databaseUrl: url, redisUrl: undefined, log }),
      notifications: new Notifications(database, log),
    };
  });
  afterAll(async () => {
    await context?.queues.close();
    await filler?.end();
    await database?.close();
    await server?.stop();
  });

  /** What is read of the table of jobs meanwhile. */
  async function measure(run: () => Promise<unknown>): Promise<Cost> {
    const { sql } = database;
    const flush = () => sql`select pg_stat_force_next_flush()`;
    const read = async (): Promise<Cost> => {
      await flush();
      await sql`select pg_stat_clear_snapshot()`;
      const [row] = await sql<[{ scans: number; rows: number }]>`
        select seq_scan::int as scans, (seq_tup_read + (
          select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'jobs'))::int as rows
        from pg_stat_user_tables where relname = 'jobs'`;
      return row;
    };
    const before = await read();
    await run();
    const after = await read();
    return { scans: after.scans - before.scans, rows: after.rows - before.rows };
  }

  async function insertHeld(): Promise<Claim> {
    const claim = { id: newId(), token: newId() };
    await database.sql`
      insert into jobs (id, kind, queue, owner, session, payload, state, dispatched, lease_token, worker)
      values (${claim.id}, 'command', 'video', 'alice', ${session}, '{"command":"true"}', 'running', now(), ${claim.token}, 'w')`;
    return claim;
  }

  // Counted once: on a busy machine a second passes between two starts.
  const openJobs = new OpenJobCounts(10 * WAITING, 3_600_000);
  const turns: QueueTurn = { queue: 'remote', last: '' };
  const command = () => ({
    kind: 'command' as const,
    payload: { command: 'true' },
    owner: 'carol',
    session,
    limit: openJobs.nextLimit('carol'),
    onCount: (open: number) => openJobs.counted('carol', open),
    share: 0.5,
  });

  /** What is asked for each job, and in each round, with the rows that it may read. */
  const statements: [name: string, most: number, run: () => Promise<() => Promise<unknown>>][] = [
    [
      'start',
      SOME,
      async () => {
        await startJobInSession(database, command(), 900);
        return () => startJobInSession(database, command(), 900);
      },
    ],
    [
      'start in a transaction',
      SOME,
      async () => {
        await startJob(database.db, command());
        return () => startJob(database.db, command());
      },
    ],
    [
      'claim',
      FEW,
      async () => {
        const id = newId();
        await database.sql`insert into jobs (id, kind, queue, owner, payload, epoch, dispatched)
          values (${id}, 'command', 'video', 'alice', '{}', 1, now())`;
        return () => claimJob(database.db, { id, epoch: 1 }, { worker: 'w' });
      },
    ],
    [
      'renew',
      2 * FEW,
      async () => {
        const held = [await insertHeld(), await insertHeld()];
        return () => renewLease(database.db, 'w', held);
      },
    ],
    [
      'update',
      FEW,
      async () => {
        const held = await insertHeld();
        return () => updateLeasedVisibly(database.db, held, { progress: 0.5 });
      },
    ],
    [
      'end',
      FEW,
      async () => {
        const held = await insertHeld();
        const ending = { state: 'succeeded' as const, result: {} };
        return () => endJobs(database.db, [{ claim: held, ending }], { notifies: true });
      },
    ],
    [
      'release',
      FEW,
      async () => {
        const held = await insertHeld();
        return () => releaseJob(database.db, held, 3_600);
      },
    ],
    [
      'cancel',
      FEW,
      async () => {
        const { id } = await insertHeld();
        return () => cancelJob(database.db, id, { byUser: true });
      },
    ],
    [
      'dispatch',
      SOME,
      async () => {
        await database.sql.unsafe(
          `update jobs set dispatched = null where queue = 'remote' and ${HAS_SLOT}`,
        );
        return () => dispatchWaiting(context, turns);
      },
    ],
    [
      'unpark what came to be supported',
      // What is parked, and nothing that has ended.
      WAITING + SOME,
      async () => () => unpark(database.db, { queue: 'remote', supported: {} }),
    ],
    [
      "cancel a session's",
      FEW,
      async () => () => cancelJobsOf(database.db, eq(jobs.session, other)),
    ],
    [
      'find a session that is long unused',
      FEW,
      async () => () =>
        findSession(database.db, { sid: other, owner: 'carol', idleSeconds: 900 }).catch(() => {}),
    ],
    [
      'remove a deleted project',
      2 * FEW,
      async () => {
        const [pid, mid] = [newId(), newId()];
        await database.sql`insert into projects (pid, name, deleted) values (${pid}, 'p', now())`;
        await database.sql`insert into models (mid, project, type, name) values (${mid}, ${pid}, 't', 'm')`;
        return async () => {
          await purgeDeletedProjects({ ...context, stopping: new AbortController().signal });
          expect(await database.sql`select from projects where pid = ${pid}`).toHaveLength(0);
        };
      },
    ],
    [
      'end idle sessions',
      SOME,
      async () => () => endIdleSessions({ ...context, config: { SESSION_IDLE_TIMEOUT: 900 } }),
    ],
    ["cancel ended sessions'", SOME, async () => () => cancelJobsOfEndedSessions(context)],
    [
      'ask who may refer to an object',
      FEW,
      async () => () => findClaimedByOpenJobs(database.db, [newObjectKey('videos', newId())]),
    ],
    ['look for lost entries', SOME, async () => () => redispatchUnclaimed(context, 'remote')],
    [
      'take leases back',
      // What has a slot is looked through three times, and once to see its leases.
      4 * SOME,
      async () => async () => reclaimLeases(context, await readLeases(context)),
    ],
  ];

  /** Measures often enough for the server to keep a plan for any parameters. */
  async function measureAll(): Promise<Record<string, Cost>> {
    const found: Record<string, Cost> = {};
    for (const [name, , prepare] of statements) {
      const costs: Cost[] = [];
      for (let times = 0; times < 7; times++) costs.push(await measure(await prepare()));
      found[name] = {
        scans: Math.max(...costs.map(cost => cost.scans)),
        rows: Math.max(...costs.map(cost => cost.rows)),
      };
    }
    return found;
  }

  async function expectFewRows(when: string): Promise<void> {
    const costs = await measureAll();
    console.log(`rows read, ${when}: ${JSON.stringify(costs)}`);
    const tooMany = statements.filter(([name, most]) => {
      const { scans = 0, rows = 0 } = costs[name] ?? {};
      return scans > 0 || rows > most;
    });
    expect([when, tooMany.map(([name]) => [name, costs[name]])]).toEqual([when, []]);
  }

  test('each statement reads as few rows as on an empty one', { timeout: 300_000 }, async () => {
    // The server keeps plans for any parameters, made while the table was empty.
    await measureAll();
    await storeEnded();
    await storeWaiting();
    await expectFewRows('analysed while it was empty');
    await filler`delete from jobs where finished is null`;
    await filler`vacuum (analyze, index_cleanup on) jobs`;
    await storeWaiting();
    await expectFewRows('analysed while nothing waited');
    await filler`analyze jobs`;
    await expectFewRows('analysed');
    await filler`alter system set plan_cache_mode = force_generic_plan`;
    await filler`select pg_reload_conf()`;
    await expectFewRows('planned for any parameters');
  });

  const storeEnded = () => filler`
    insert into jobs (id, kind, queue, owner, session, payload, state, finished)
    select '0' || lpad(n::text, 25, '0'), 'command', 'remote', 'alice', ${session}, '{}', 'succeeded', now()
    from generate_series(1, ${ENDED}::int) n`;

  /** Jobs of four users. Of one of them, and of most of another, nothing is due before tomorrow; some were released and are due. */
  const storeWaiting = () => filler`
    insert into jobs (id, kind, queue, owner, payload, not_before)
    select '1' || lpad(n::text, 25, '0'), 'command', 'remote',
      case when n % 10 = 0 then 'alice' when n % 10 = 1 then 'bob' when n % 10 < 7 then 'carol' else 'dave' end, '{}',
      case when n % 10 = 2 then now() - interval '1 hour' when n % 10 > 3 then now() + interval '1 day' end
    from generate_series(1, ${WAITING}::int) n`;
});
