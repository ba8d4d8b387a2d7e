import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import { LEASE_SECONDS } from '../../shared/jobs/lease.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { showReader } from '../../shared/jobs/reader-signs.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import type { Handler } from '../../workers/context.ts';
import { type Claim, LeaseRevoked } from '../../workers/engine/claim.ts';
import { runDispatcher } from '../../workers/engine/dispatcher.ts';
import { readLeases, reclaimLeases, SilentWorkers } from '../../workers/engine/expired-leases.ts';
import { HeldClaims } from '../../workers/engine/held-claims.ts';
import { JobGroups } from '../../workers/engine/job-groups.ts';
import { JobSignals } from '../../workers/engine/job-signals.ts';
import { ReleaseJob } from '../../workers/engine/release-job.ts';
import { runJob } from '../../workers/engine/run-job.ts';
import type { Versioned } from '../../workers/engine/unchanged.ts';
import { UnloadableProgram } from '../../workers/engine/unloadable-program.ts';
import { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import command from '../../workers/handlers/command.ts';
import { claimJob } from '../harness/claim-job.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { waitFor } from '../harness/wait-for.ts';
import { makeWorkerContext } from '../harness/worker-context.ts';

const given = withDatabase('leases');
const log = createLog({ level: 'silent', name: 'test', secrets: [] });
const started: HeldClaims[] = [];
let database: ReturnType<typeof openDatabase>;
let notifications: Notifications;

beforeAll(async () => {
  database = given.database();
  notifications = new Notifications(database, log);
  await database.sql`alter system set autovacuum = off`;
  await database.sql`select pg_reload_conf()`;
});
afterAll(() => {
  for (const claims of started) claims.stop();
});

/** A worker that renews its lease. */
function makeWorker(over = database, options: { lookMs?: number; readerLostMs?: number } = {}) {
  const id = newId();
  const metrics = new WorkerMetrics();
  const claims = new HeldClaims({ id, database: over, notifications, log, metrics }, options);
  started.push(claims);
  return { id, claims, over };
}

async function insertDispatched(
  kind: JobKind = 'command',
  payload: object = { command: 'true' },
): Promise<string> {
  const id = newId();
  await database.sql`insert into jobs (id, kind, queue, session, owner, payload, epoch, dispatched)
    values (${id}, ${kind}, 'remote', 's', 'alice', ${JSON.stringify(payload)}::jsonb, 1, now())`;
  return id;
}

/** Has the worker claim a job and renew its lease from now on. */
async function claimNew({ id: worker, claims, over }: ReturnType<typeof makeWorker>) {
  const id = await insertDispatched();
  const claim: Claim = { id, token: newId() };
  const sentAt = performance.now();
  const given = { worker, token: claim.token };
  expect(await claimJob(over.db, { id, epoch: 1 }, given)).toBeDefined();
  const signals = new JobSignals(new AbortController().signal);
  claims.track(claim, { sentAt, signals, log });
  return { ...claim, signal: signals.signal };
}

/** A job that a worker claimed which is not there any more. */
async function claimByDead(): Promise<string> {
  const id = await insertDispatched();
  await claimJob(database.db, { id, epoch: 1 }, { worker: `dead ${id}` });
  return id;
}

async function tokenOf({ id }: { id: string }): Promise<string | null> {
  const [row] = await database.sql`select lease_token from jobs where id = ${id}`;
  return row?.lease_token;
}

const context = () => ({ database, notifications, log, metrics: new WorkerMetrics() });

/** What the dispatcher sees: the worker's lease as it is now. */
const see = async (worker: string) => {
  const seen = (await readLeases(context())).filter(({ id }) => id === worker);
  expect(seen).toHaveLength(1);
  return seen;
};

const reclaim = (seen: Versioned[]) => reclaimLeases(context(), seen);

test('a renewal changes one narrow row in its page, however many jobs it is for', async () => {
  // One connection: each tells the server's statistics of its own changes.
  const one = openDatabase(given.url, { max: 1 });
  const worker = makeWorker(one);
  const claims = await Promise.all(Array.from({ length: 20 }, () => claimNew(worker)));
  const { db } = one;
  const read = async () => {
    await db.execute(sql`select pg_stat_force_next_flush()`);
    const [row] = await db.execute<Record<string, string>>(sql`
      select pg_current_wal_insert_lsn() - '0/0' as wal,
        sum(n_tup_upd) filter (where relname = 'jobs') as jobs,
        sum(n_tup_upd) filter (where relname = 'leases') as leases,
        sum(n_tup_hot_upd) filter (where relname = 'leases') as hot
      from pg_stat_user_tables`);
    return Object.fromEntries(Object.entries(row ?? {}).map(([key, n]) => [key, Number(n)]));
  };
  const before = await read();
  const times = 300;
  for (let i = 0; i < times; i++) await worker.claims.renew();
  const after = await read();
  const of = (key: string) => (after[key] ?? 0) - (before[key] ?? 0);
  expect(of('jobs')).toBe(0);
  expect(of('leases')).toBeGreaterThanOrEqual(times);
  expect(of('hot')).toBe(of('leases'));
  // Full images of pages after a checkpoint included.
  expect(of('wal') / times).toBeLessThan(400);
  for (const claim of claims) expect(claim.signal.aborted).toBe(false);
  worker.claims.stop();
  await one.close();
});

test('a job whose reader shows no more sign of life is cancelled', async () => {
  const worker = makeWorker(database, { readerLostMs: 200 });
  const read = await claimNew(worker);
  const left = await claimNew(worker);
  // Of an API of the previous release.
  const unknown = await claimNew(worker);
  for (const { id } of [read, left]) await showReader(database.db, id);
  const isLeft = async () => {
    await showReader(database.db, read.id);
    await worker.claims.renew();
    return left.signal.aborted;
  };
  await waitFor(isLeft, { what: 'the job that nobody reads to be cancelled' });
  expect(left.signal.reason).toMatchObject({ code: 'cancelled' });
  for (const { signal } of [read, unknown]) expect(signal.aborted).toBe(false);
  worker.claims.stop();
});

test('a claim that a failover restored at a worker which had ended its job is abandoned', async () => {
  const worker = makeWorker(database, { lookMs: 0 });
  const [kept, ended] = [await claimNew(worker), await claimNew(worker)];
  // Its end was committed on the old server alone.
  worker.claims.untrack(ended);
  await worker.claims.renew();
  // A claim whose answer is on its way looks the same.
  expect(await tokenOf(ended)).toBe(ended.token);
  await worker.claims.renew();
  expect([await tokenOf(ended), await tokenOf(kept)]).toEqual([null, kept.token]);
  expect(kept.signal.aborted).toBe(false);
});

test('a command whose end a failover lost is not requested again', async () => {
  const worker = makeWorker(database, { lookMs: 0 });
  // The worker's lease is renewed for this one.
  await claimNew(worker);
  const id = await insertDispatched();
  const { id: name, claims } = worker;
  const metrics = new WorkerMetrics();
  const context = makeWorkerContext({
    id: name,
    log,
    notifications,
    claims,
    metrics,
    database,
  });
  let before: { lease_token: string; worker: string } | undefined;
  const end: Handler<JobKind> = async ({ update }) => {
    await update({ runAt: new Date(), runPlace: 'boot fences' });
    [before] = await database.sql<{ lease_token: string; worker: string }[]>`
      select lease_token, worker from jobs where id = ${id}`;
    return { result: { returncode: 0 } };
  };
  await runJob(context, { id, epoch: 1 }, new Map([['command', end]] as const));
  await database.sql`update jobs set state = 'running', finished = null, result = null,
    run_at = null, run_place = null, lease_token = ${before?.lease_token ?? null},
    worker = ${before?.worker ?? null} where id = ${id}`;
  await claims.renew();
  await claims.renew();
  expect(await tokenOf({ id })).toBeNull();

  const [row] = await database.sql`
    update jobs set dispatched = now(), not_before = now(), epoch = epoch + 1 where id = ${id} returning epoch`;
  const handlers = new Map([['command', command as Handler<JobKind>]] as const);
  expect(await runJob(context, { id, epoch: row?.epoch }, handlers)).toBe(true);
  const [ended] =
    await database.sql`select state, error->>'code' as code from jobs where id = ${id}`;
  expect(ended).toEqual({ state: 'failed', code: 'outcome_unknown' });
});

/** A worker that runs jobs, and renews its lease for another one. */
async function startRunner() {
  const worker = makeWorker(database, { lookMs: 0 });
  await claimNew(worker);
  const { id: name, claims } = worker;
  const context = makeWorkerContext({
    id: name,
    log,
    notifications,
    claims,
    metrics: new WorkerMetrics(),
    database,
  });
  return {
    claims,
    /** Dispatches and runs it; false where there was nothing to do. */
    run: async (id: string, handler: Handler<JobKind>) => {
      const [row] = await database.sql`
        update jobs set dispatched = now(), not_before = now(), epoch = epoch + 1 where id = ${id} returning epoch, kind`;
      return runJob(context, { id, epoch: row?.epoch }, new Map([[row?.kind, handler]]));
    },
    /** As a failover that lost all since the claim under this token, or before any claim; the worker looks twice. */
    giveBack: async (id: string, token: string | null) => {
      await database.sql`update jobs set finished = null, result = null, error = null,
        state = ${token ? 'running' : 'queued'}, lease_token = ${token}, worker = ${token && name},
        run_at = null, run_place = null, run_removed = false where id = ${id}`;
      await claims.renew();
      await claims.renew();
      expect(await tokenOf({ id })).toBeNull();
    },
  };
}

const changeHost =
  (intent: Partial<JobRow>, result: object): Handler<JobKind> =>
  async ({ job, update }) => {
    await update({ runAt: new Date(), ...intent });
    Object.assign(job, { runAt: new Date(), ...intent });
    return { result: result as never };
  };
const endOf = async (id: string) => {
  const [row] = await database.sql`
    select state, result, error->>'code' as code from jobs where id = ${id}`;
  return row;
};

const loseDatabase: Handler<JobKind> = async () => {
  await database.sql`select pg_terminate_backend(pg_backend_pid())`;
  throw new Error('its connection was ended');
};

test('a worker that abandons a command whose end a failover lost tells the next one so', async () => {
  const { claims, run, giveBack } = await startRunner();
  const id = await insertDispatched();
  await run(id, changeHost({ runPlace: 'boot fences' }, { returncode: 0 }));
  await giveBack(id, null);
  await run(id, loseDatabase);
  await claims.renew();
  const [row] = await database.sql`select lease_token, run_removed from jobs where id = ${id}`;
  expect(row).toEqual({ lease_token: null, run_removed: true });
});

test('a command that a failover gives back as it was before its last claim is not requested again', async () => {
  const { run, giveBack } = await startRunner();
  const [released, unclaimed] = [await insertDispatched(), await insertDispatched()];
  let token = '';
  await run(released, async context => {
    token = context.token;
    throw new ReleaseJob('the host is unreachable', 0);
  });
  const end = changeHost({ runPlace: 'boot fences' }, { returncode: 0 });
  for (const id of [released, unclaimed]) await run(id, end);
  await giveBack(released, token);
  await giveBack(unclaimed, null);

  for (const id of [released, unclaimed]) {
    expect(await run(id, command as Handler<JobKind>)).toBe(true);
    expect(await endOf(id)).toEqual({ state: 'failed', result: null, code: 'outcome_unknown' });
  }
});

test.each<[JobKind, object, object]>([
  ['remove-file', { path: '/x' }, {}],
  [
    'write-file',
    { path: '/x', object: 'o', size: 1, digest: 'd', parents: false, exclusive: false },
    { created: true },
  ],
])(
  'a %s whose end a failover lost ends as it had ended, and is not done again',
  async (kind, payload, result) => {
    const { claims, run, giveBack } = await startRunner();
    const [done, refused, unclaimed] = await Promise.all(
      Array.from({ length: 3 }, () => insertDispatched(kind, payload)),
    );
    if (!done || !refused || !unclaimed) throw new Error('three were inserted');
    const tokens = new Map<string, string>();
    const change: Handler<JobKind> = async context => {
      expect(tokens.has(context.job.id)).toBe(false);
      tokens.set(context.job.id, context.token);
      // A host's words may have a NUL, which no text of PostgreSQL has.
      if (context.job.id === refused)
        throw new WindlassError('not_found', { detail: 'There is no \0.' });
      return changeHost({ runRemoved: true }, result)(context);
    };
    for (const id of [done, refused, unclaimed]) await run(id, change);
    for (const id of [done, refused]) await giveBack(id, tokens.get(id) ?? null);
    await giveBack(unclaimed, null);

    for (const id of [done, refused, unclaimed]) expect(await run(id, change)).toBe(false);
    await claims.renew();
    for (const id of [done, unclaimed])
      expect(await endOf(id)).toEqual({ state: 'succeeded', result, code: null });
    expect(await endOf(refused)).toEqual({ state: 'failed', result: null, code: 'not_found' });
  },
);

test('a job whose program cannot be loaded is released, and fails after as many losses in a row', async () => {
  const { run } = await startRunner();
  const id = await insertDispatched();
  const fail: Handler<JobKind> = async ({ progress, updateVisibly }) => {
    // Progress of the attempt itself is none.
    progress(0.5);
    await updateVisibly({ message: 'begun' });
    throw new UnloadableProgram('a package is not there');
  };
  const read = async () => {
    const [row] = await database.sql`select state, lease_token, consecutive_losses as losses,
      not_before > now() as waits from jobs where id = ${id}`;
    return row;
  };
  const released = { state: 'running', lease_token: null };
  await run(id, fail);
  expect(await read()).toEqual({ ...released, losses: 1, waits: false });
  await run(id, fail);
  expect(await read()).toEqual({ ...released, losses: 2, waits: true });
  await database.sql`update jobs set consecutive_losses = 18 where id = ${id}`;
  await run(id, fail);
  expect(await read()).toEqual({ ...released, losses: 19, waits: true });
  await run(id, fail);
  expect(await endOf(id)).toEqual({ state: 'failed', result: null, code: 'internal' });
});

test('only progress beyond that of the lost attempts ends their row', async () => {
  const { claims, run } = await startRunner();
  const id = await insertDispatched();
  const read = async () => {
    const [row] = await database.sql`
      select progress, message, consecutive_losses as losses from jobs where id = ${id}`;
    return row;
  };
  /** An attempt that is lost when it has written this progress; what was written of it. */
  const lose = async (value: number, message: string) => {
    let written: unknown;
    await run(id, async ({ progress }) => {
      progress(value, message);
      await waitFor(async () => (await read())?.message === message, { what: 'the progress' });
      written = await read();
      return loseDatabase({} as never);
    });
    await claims.renew();
    expect((await tokenOf({ id })) === null).toBe(true);
    return written;
  };
  expect(await lose(1 / 3, 'a')).toMatchObject({ losses: 0 });
  const { progress } = (await read()) ?? {};
  expect(progress).toBeCloseTo(1 / 3);
  expect(await lose(0, 'b')).toEqual({ progress, message: 'b', losses: 1 });
  expect(await lose(1 / 3, 'c')).toEqual({ progress, message: 'c', losses: 2 });
  expect(await read()).toMatchObject({ losses: 3 });
  expect(await lose(0.4, 'd')).toEqual({ progress: 0.4, message: 'd', losses: 0 });
  expect(await lose(0.4, 'e')).toMatchObject({ losses: 1 });
});

test('an outdated entry, or an outdated end, takes no place from the current one of its job', async () => {
  const id = await insertDispatched();
  await database.sql`update jobs set epoch = 2 where id = ${id}`;
  const groups = new JobGroups({ id: newId(), database, notifications });
  const [before, now] = [newId(), newId()];
  // In one turn, as a group would be.
  const [outdated, current] = await Promise.all([
    groups.claim({ id, epoch: 1 }, before),
    groups.claim({ id, epoch: 2 }, now),
  ]);
  expect([outdated, current?.leaseToken]).toEqual([undefined, now]);
  const ends = await Promise.allSettled([
    groups.end({ claim: { id, token: now }, ending: { state: 'succeeded' } }),
    groups.end({ claim: { id, token: before }, ending: { state: 'failed' } }),
  ]);
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  const [row] = await database.sql`select state from jobs where id = ${id}`;
  expect(row).toEqual({ state: 'succeeded' });
});

test('a job whose row is locked keeps no lease from being renewed', async () => {
  const worker = makeWorker();
  const [locked, other] = [await claimNew(worker), await claimNew(worker)];
  const holder = postgres(given.url, { max: 1 });
  try {
    await holder.unsafe('begin');
    await holder`select from jobs where id = ${locked.id} for update`;
    const seen = await see(worker.id);
    await worker.claims.renew();
    await reclaim(seen);
    for (const claim of [locked, other]) expect(await tokenOf(claim)).toBe(claim.token);
  } finally {
    await holder.end();
  }
});

test('a locked row of an abandoned claim keeps no lease from being renewed, and is written later', async () => {
  const worker = makeWorker();
  const held = await claimNew(worker);
  const abandoned = { id: await insertDispatched(), token: newId() };
  await claimJob(
    database.db,
    { id: abandoned.id, epoch: 1 },
    { worker: worker.id, token: abandoned.token },
  );
  worker.claims.abandoned.add(abandoned);
  const holder = postgres(given.url, { max: 1 });
  try {
    await holder.unsafe('begin');
    await holder`select from jobs where id = ${abandoned.id} for update`;
    const seen = await see(worker.id);
    await worker.claims.renew();
    await reclaim(seen);
    expect(await tokenOf(held)).toBe(held.token);
    expect(held.signal.aborted).toBe(false);
  } finally {
    await holder.end();
  }
  await worker.claims.renew();
  expect(await tokenOf(abandoned)).toBeNull();
});

test('a worker finds that its jobs were reclaimed, and does nothing outside any more', async () => {
  const worker = makeWorker();
  const claim = await claimNew(worker);
  await reclaim(await see(worker.id));
  expect(await tokenOf(claim)).toBeNull();
  await expect(worker.claims.assertLeased(claim, performance.now())).rejects.toThrow(LeaseRevoked);
  expect(claim.signal.reason).toBeInstanceOf(LeaseRevoked);
});

test('of a renewal and a reclaim at once the first wins, and the other knows', async () => {
  const worker = makeWorker();
  const claim = await claimNew(worker);
  const seen = await see(worker.id);
  await database.db.transaction(async tx => {
    await reclaimLeases({ ...context(), database: { ...database, db: tx as never } }, seen);
    void worker.claims.renew();
    await untilLocked(database.db);
  });
  await waitFor(() => claim.signal.aborted, { what: 'the worker to know of its loss' });
  expect(claim.signal.reason).toBeInstanceOf(LeaseRevoked);

  const next = await claimNew(worker);
  const before = await see(worker.id);
  const holder = postgres(given.url, { max: 1 });
  try {
    await holder.unsafe('begin');
    await holder`update leases set expires = now() + interval '10 seconds' where worker = ${worker.id}`;
    // It does not wait.
    await reclaim(before);
    await holder.unsafe('commit');
    await reclaim(before);
    expect(await tokenOf(next)).toBe(next.token);
  } finally {
    await holder.end();
  }
});

test('a claim that was committed and not answered is abandoned by its worker, as a loss', async () => {
  const { hostname, port } = new URL(given.url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  const cut = openDatabase(given.url.replace(`:${port}/`, `:${proxy.port}/`), { max: 1 });
  try {
    const { id, claims } = makeWorker();
    // Prepared, it is one message each way.
    await claimJob(cut.db, { id: await insertDispatched(), epoch: 1 }, { worker: id });
    const job = await insertDispatched();
    const worker = makeWorkerContext({
      id,
      log,
      notifications,
      claims,
      metrics: new WorkerMetrics(),
      database: cut,
    });
    proxy.blackhole('down');
    const running = runJob(worker, { id: job, epoch: 1 }, new Map());
    await waitFor(() => tokenOf({ id: job }), { what: 'the claim to be committed' });
    proxy.cut();
    expect(await running).toBe(false);
    await claims.renew();
    const [row] = await database.sql`
      select lease_token, dispatched, consecutive_losses from jobs where id = ${job}`;
    expect(row).toEqual({ lease_token: null, dispatched: null, consecutive_losses: 1 });
  } finally {
    await cut.close();
    await proxy.stop();
  }
});

test('a job whose attempt the database cut short is abandoned by its worker, as a loss', async () => {
  const { id, claims } = makeWorker();
  // Its lease would be renewed for this one.
  await claimNew({ id, claims, over: database });
  const job = await insertDispatched();
  const worker = makeWorkerContext({
    id,
    log,
    notifications,
    claims,
    metrics: new WorkerMetrics(),
    database,
  });
  const handlers = new Map([['command', loseDatabase]] as const);
  expect(await runJob(worker, { id: job, epoch: 1 }, handlers)).toBe(true);
  await claims.renew();
  const [row] =
    await database.sql`select lease_token, dispatched, finished, consecutive_losses from jobs where id = ${job}`;
  expect(row).toEqual({
    lease_token: null,
    dispatched: null,
    finished: null,
    consecutive_losses: 1,
  });
});

const setClock = (by: string) =>
  database.sql.unsafe(
    `create or replace function clock() returns timestamptz language sql stable as $$ select now() + interval '${by}' $$`,
  );

test.each([
  ['forth and back', '15 seconds'],
  ['back and forth', '-15 seconds'],
])('a clock that is set %s between two looks takes no lease from the living', async (_way, by) => {
  const worker = makeWorker();
  const claim = await claimNew(worker);
  const silent = new SilentWorkers();
  try {
    for (let looks = 0; looks < 2 * LEASE_SECONDS; looks++) {
      await setClock(by);
      await worker.claims.renew();
      await setClock('0 seconds');
      await silent.reclaimExpiredLeases(context());
    }
    expect(await tokenOf(claim)).toBe(claim.token);
  } finally {
    await setClock('0 seconds');
  }
});

test('a job whose worker has no lease is reclaimed', async () => {
  const id = await insertDispatched();
  await database.sql`update jobs set lease_token = ${newId()}, worker = 'of 0.1.0' where id = ${id}`;
  const silent = new SilentWorkers();
  for (let looks = 0; looks < LEASE_SECONDS; looks++) {
    expect(await tokenOf({ id })).not.toBeNull();
    await silent.reclaimExpiredLeases(context());
  }
  expect(await tokenOf({ id })).toBeNull();
});

test('a transaction in which a program has stopped is ended, and one that goes on is not', async () => {
  const connect = () =>
    postgres(given.url, { max: 1, connection: { application_name: 'windlass-test' } });
  const [stopped, alive, long] = [connect(), connect(), connect()];
  const silent = new SilentWorkers();
  try {
    const pidOf = async (client: postgres.Sql) => (await client`select pg_backend_pid()`)[0];
    const before = [await pidOf(stopped), await pidOf(alive), await pidOf(long)];
    await stopped.unsafe('begin');
    await stopped.unsafe('select 1');
    await long.unsafe('begin');
    for (let looks = 0; looks < 2 * LEASE_SECONDS; looks++) {
      await alive.unsafe('begin');
      await alive.unsafe('select 1');
      await long.unsafe('select 1');
      await silent.endStuckTransactions({ database });
      await alive.unsafe('commit');
    }
    // Its client connects again.
    expect(await pidOf(stopped)).not.toEqual(before[0]);
    expect(await pidOf(alive)).toEqual(before[1]);
    expect(await pidOf(long)).toEqual(before[2]);
  } finally {
    await Promise.all([stopped.end(), alive.end(), long.end()]);
  }
});

test('setting the clock takes no lease from the living, and keeps none for the dead', async () => {
  const stopping = new AbortController();
  const queues = new JobQueues({ databaseUrl: given.url, redisUrl: undefined, log });
  const worker = makeWorker();
  const claim = await claimNew(worker);
  const dispatcher = runDispatcher(
    makeWorkerContext({
      id: newId(),
      database,
      log,
      notifications,
      metrics: new WorkerMetrics(),
      queues,
      stopping: stopping.signal,
      config: readConfig({ DATABASE_URL: given.url }),
    }),
  );
  const untilReclaimed = (id: string) =>
    waitFor(async () => (await tokenOf({ id })) === null, {
      what: 'the lease of the dead to be reclaimed',
      timeoutMs: 40_000,
    });
  try {
    await untilReclaimed(await claimByDead());
    for (const by of ['15 seconds', '-1 hour']) {
      const dead = await claimByDead();
      await setClock(by);
      await untilReclaimed(dead);
      expect([by, await tokenOf(claim)]).toEqual([by, claim.token]);
    }
    expect(claim.signal.aborted).toBe(false);
  } finally {
    stopping.abort();
    await dispatcher;
    await setClock('0 seconds');
    await queues.close();
  }
}, 180_000);
