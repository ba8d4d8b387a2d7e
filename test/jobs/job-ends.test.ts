import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import { removeUser } from '../../api/identity/remove-user.ts';
import { JobWatch } from '../../api/jobs/streaming/job-watch.ts';
import { type Database, openDatabase, type Tx } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import {
  type JobRow,
  jobs,
  members,
  models,
  projects,
  sessions,
  uploads,
  users,
} from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import { cancelJobs } from '../../shared/jobs/cancel.ts';
import type { JobKind } from '../../shared/jobs/catalog.ts';
import { summaryColumns } from '../../shared/jobs/job-record.ts';
import { createLog } from '../../shared/process/log.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { FreeSpace } from '../../shared/storage/free-space.ts';
import type { Handler } from '../../workers/context.ts';
import { finishJob } from '../../workers/engine/end-jobs.ts';
import { HeldClaims } from '../../workers/engine/held-claims.ts';
import { JobGroups } from '../../workers/engine/job-groups.ts';
import { runJob } from '../../workers/engine/run-job.ts';
import { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import copy from '../../workers/handlers/copy.ts';
import type { SessionPool } from '../../workers/ssh/session-pool.ts';
import { cancelJobsOfEndedSessions } from '../../workers/upkeep/sessions.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';
import { makeWorkerContext } from '../harness/worker-context.ts';

const given = withDatabase('job-ends');
let database: Database;

beforeAll(() => {
  database = given.database();
});

const silent = () => new Notifications(database, createLog({ level: 'silent', name: 'test' }));

async function makeProject(): Promise<string> {
  const pid = newId();
  await database.db.insert(projects).values({ pid, name: 'p' });
  return pid;
}

/** A job in a worker's hands. */
async function makeHeld(set: Partial<typeof jobs.$inferInsert> = {}) {
  const claim = { id: newId(), token: newId() };
  await database.db.insert(jobs).values({
    id: claim.id,
    leaseToken: claim.token,
    kind: 'video',
    queue: 'video',
    owner: 'u',
    payload: {},
    state: 'running',
    ...set,
  });
  return claim;
}

async function read({ id }: { id: string }): Promise<JobRow | undefined> {
  const [row] = await database.db.select().from(jobs).where(eq(jobs.id, id));
  return row;
}

const lockAlive = async (tx: Tx, pid: string) => {
  const [found] = await tx
    .select()
    .from(projects)
    .where(and(eq(projects.pid, pid), isNull(projects.deleted)))
    .for('share');
  if (!found) throw new Error('its project is gone');
};

test('a project that is deleted while a job for it ends: the job is asked to end, and promotes nothing', async () => {
  const { db } = database;
  const pid = await makeProject();
  const claim = await makeHeld({ project: pid });
  let ending: Promise<unknown> | undefined;
  await db.transaction(async deletion => {
    await deletion.select().from(projects).where(eq(projects.pid, pid)).for('update');
    ending = finishJob(db, claim, { state: 'succeeded' }, tx => lockAlive(tx, pid));
    ending.catch(() => {});
    await untilLocked(db);
    await deletion.update(projects).set({ deleted: sql`now()` }).where(eq(projects.pid, pid));
    expect(await cancelJobs(deletion, eq(jobs.project, pid))).toEqual([claim.id]);
  });
  await expect(ending).rejects.toThrow('its project is gone');
  expect(await read(claim)).toMatchObject({ state: 'running', cancelRequested: expect.any(Date) });
});

test('a user who is removed while a job of theirs ends: neither waits for the other in a circle', async () => {
  const { db } = database;
  const username = newId();
  const pid = await makeProject();
  await db.insert(users).values({ username, passwordHash: '' });
  await db.insert(members).values({ project: pid, username, role: 'administrator' });
  const claim = await makeHeld({ project: pid, owner: username });
  let removal: Promise<unknown> | undefined;
  await finishJob(db, claim, { state: 'succeeded' }, async tx => {
    await lockAlive(tx, pid);
    removal = db.transaction(other => removeUser(other, username, async () => {}));
    removal.catch(() => {});
    await untilLocked(db);
  });
  await removal;
  const row = await read(claim);
  expect([row?.state, row?.cancelRequested]).toEqual(['succeeded', null]);
  expect(row?.owner).toMatch(new RegExp(`^${username} \\(removed `));
});

test('a job that is cancelled while it commits its result ends as cancelled, whatever isolation the database prefers', async () => {
  const claim = await makeHeld();
  const set = (level: string) =>
    database.db.execute(sql`do $$ begin
      execute format('alter database %I set default_transaction_isolation = ${sql.raw(level)}', current_database());
    end $$`);
  await set("''repeatable read''");
  const other = openDatabase(given.url);
  try {
    const ending = finishJob(other.db, claim, { state: 'succeeded' }, async tx => {
      await tx.select().from(projects);
      expect(await cancelJobs(database.db, eq(jobs.id, claim.id))).toEqual([claim.id]);
    });
    await expect(ending).rejects.toMatchObject({ code: 'cancelled' });
  } finally {
    await set('default');
    await other.close();
  }
});

test.each(['jobs', 'uploads'])(
  'a user of many %s is removed in statements of bounded size',
  async table => {
    const { db } = database;
    const [username, pid, mid] = [newId(), newId(), newId()];
    const count = 7_000;
    await db.insert(users).values({ username, passwordHash: '' });
    await db.insert(projects).values({ pid, name: 'p' });
    await db.insert(models).values({ mid, project: pid, type: 't', name: 'm' });
    await db.execute(
      table === 'jobs'
        ? sql`insert into jobs (id, kind, queue, owner, payload, state, finished, stdout_bytes)
          select ${username} || n, 'command', 'remote', ${username}, '{}', 'succeeded', now(), 1
          from generate_series(1, ${count}::int) n`
        : sql`insert into uploads (uid, owner, model, parser, parameters, aids, input)
          select ${username} || n, ${username}, ${mid}, 'csv', '{}', '{a}', true
          from generate_series(1, ${count}::int) n`,
    );
    await db.execute(sql`create table updates (rows int)`);
    await db.execute(sql`create function note_update() returns trigger language plpgsql as
    $$ begin insert into updates select count(*) from changed; return null; end $$`);
    await db.execute(sql`create trigger note_update after update on ${sql.identifier(table)}
    referencing new table as changed for each statement execute function note_update()`);
    try {
      await db.transaction(tx => removeUser(tx, username, async () => {}));
      const [largest] = await db.execute<{ rows: number; all: number }>(
        sql`select max(rows) as rows, sum(rows)::int as all from updates`,
      );
      expect(largest).toEqual({ rows: 5_000, all: count });
      expect(await db.$count(jobs, eq(jobs.owner, username))).toBe(0);
      expect(await db.$count(uploads, eq(uploads.owner, username))).toBe(0);
    } finally {
      await db.execute(sql`drop function note_update cascade`);
      await db.execute(sql`drop table updates`);
    }
  },
);

test('a job that a worker takes just then is asked to end, not ended under its hands', async () => {
  const { db } = database;
  const claim = await makeHeld({ state: 'queued', leaseToken: null });
  let cancelling: Promise<string[]> | undefined;
  await db.transaction(async taking => {
    await taking
      .update(jobs)
      .set({ state: 'running', leaseToken: claim.token })
      .where(eq(jobs.id, claim.id));
    cancelling = cancelJobs(db, eq(jobs.id, claim.id));
    cancelling.catch(() => {});
    await untilLocked(db);
  });
  expect(await cancelling).toEqual([claim.id]);
  expect(await read(claim)).toMatchObject({
    state: 'running',
    finished: null,
    cancelRequested: expect.any(Date),
  });
});

test('a repeat that no worker has claimed ends at once, whatever its first request has begun', async () => {
  const { db } = database;
  const held = { state: 'queued', leaseToken: null, runAt: new Date(0) } as const;
  const repeat = await makeHeld({ ...held, kind: 'remove-file' });
  const batch = await makeHeld({ ...held, kind: 'batch' });
  await cancelJobs(db, inArray(jobs.id, [repeat.id, batch.id]));
  expect(await read(repeat)).toMatchObject({ state: 'cancelled', finished: expect.any(Date) });
  expect(await read(batch)).toMatchObject({ state: 'queued', finished: null });
});

test('what was asked to end promotes nothing, also where its worker has not heard of it', async () => {
  const { db } = database;
  const [pid, claim] = [await makeProject(), await makeHeld()];
  const ending = finishJob(db, claim, { state: 'succeeded' }, async tx => {
    await tx.update(projects).set({ name: 'promoted' }).where(eq(projects.pid, pid));
    expect(await cancelJobs(db, eq(jobs.id, claim.id))).toEqual([claim.id]);
  });
  await expect(ending).rejects.toMatchObject({ code: 'cancelled' });
  const [project] = await db.select().from(projects).where(eq(projects.pid, pid));
  expect([project?.name, (await read(claim))?.state]).toEqual(['p', 'running']);
});

test('a job fails with whatever words: what jsonb cannot hold is replaced', async () => {
  const claim = await makeHeld();
  const detail = `Invalid: a\0b ${'\u{1f4a5}'.slice(0, 1)} \u{1f4a5}`;
  const error = { code: 'parse_failed' as const, detail, errors: [{ column: '\ud800' }] };
  const groups = new JobGroups({ id: 'w', database, notifications: silent() });
  await groups.end({ claim, ending: { state: 'failed', error } });
  expect(await read(claim)).toMatchObject({
    state: 'failed',
    error: {
      code: 'parse_failed',
      detail: 'Invalid: a\ufffdb \ufffd \u{1f4a5}',
      errors: [{ column: '\ufffd' }],
    },
  });
});

test('whoever waits for a job is told of its end with a lower version, as after a failover that lost some', async () => {
  const { db } = database;
  const notifications = silent();
  const log = createLog({ level: 'silent', name: 'test' });
  const watch = new JobWatch({ database, notifications, log });
  const ended = { state: 'succeeded', finished: new Date(), leaseToken: null } as const;
  try {
    for (const version of [9, 10]) {
      const { id } = await makeHeld({ version: 10 });
      const [row] = await db.select(summaryColumns).from(jobs).where(eq(jobs.id, id));
      if (!row) throw new Error('it was made');
      const told: number[] = [];
      const unsubscribe = watch.subscribe(row, next => void told.push(next?.version ?? 0));
      await db
        .update(jobs)
        .set({ ...ended, version })
        .where(eq(jobs.id, id));
      const end = await watch.untilEnded(row, AbortSignal.timeout(5_000));
      expect(end).toMatchObject({ state: 'succeeded', version });
      // A read of its own, after which nothing is told again.
      await watch.untilEnded(row, AbortSignal.timeout(5_000));
      expect(told).toEqual([version]);
      unsubscribe();
    }
  } finally {
    watch.close();
    await notifications.close();
  }
});

test('a renewal that overtakes the answer of the write that ended its job does not take it for lost', async () => {
  const { db } = database;
  const lines: string[] = [];
  const log = createLog({ level: 'warn', name: 'test', write: line => lines.push(line) });
  const notifications = new Notifications(database, log);
  const metrics = new WorkerMetrics();
  const claims = new HeldClaims({ id: 'w', database, notifications, log, metrics });
  const lateAnswers = Object.create(db, {
    transaction: {
      value: async (...given: Parameters<typeof db.transaction>) => {
        const answer = await db.transaction(...given);
        await claims.renew();
        return answer;
      },
    },
  });
  const id = newId();
  const payload = { command: 'true' };
  await db
    .insert(jobs)
    .values({ id, kind: 'command', queue: 'remote', session: 's', owner: 'u', payload });
  const worker = makeWorkerContext({
    id: 'w',
    log,
    notifications,
    claims,
    metrics,
    database: { ...database, db: lateAnswers },
  });
  const handler = async () => ({ result: { returncode: 0 }, promote: async () => {} });
  await runJob(worker, { id, epoch: 0 }, new Map([['command', handler as Handler<JobKind>]]));
  claims.stop();
  expect(await read({ id })).toMatchObject({ state: 'succeeded', leaseToken: null });
  expect(lines).toEqual([]);
});

test('a job whose last output a failover lost is abandoned, though its worker holds it still', async () => {
  const { db } = database;
  const log = createLog({ level: 'silent', name: 'test' });
  const notifications = new Notifications(database, log);
  const metrics = new WorkerMetrics();
  const claims = new HeldClaims({ id: 'w', database, notifications, log, metrics });
  const objects = new FileStore(given.path);
  const id = newId();
  const payload = { command: 'true' };
  await db
    .insert(jobs)
    .values({ id, kind: 'command', queue: 'remote', session: 's', owner: 'u', payload });
  const worker = makeWorkerContext({
    id: 'w',
    log,
    notifications,
    claims,
    metrics,
    database,
    objects,
    freeSpace: new FreeSpace(objects, 0),
  });
  const handler: Handler<'command'> = async context => {
    const output = await context.output();
    await output.append('stdout', Buffer.from('kept lost'));
    await output.flush();
    await db.update(jobs).set({ stdoutBytes: 5 }).where(eq(jobs.id, id));
    await output.append('stdout', Buffer.from('more'));
    await output.flush();
    return { result: { returncode: 0 } };
  };
  await runJob(worker, { id, epoch: 0 }, new Map([['command', handler as Handler<JobKind>]]));
  await claims.renew();
  claims.stop();
  expect(await read({ id })).toMatchObject({ state: 'running', leaseToken: null });
});

test('a copy that was cancelled while its worker stops ends, and is not released', async () => {
  const { db } = database;
  const log = createLog({ level: 'silent', name: 'test' });
  const notifications = new Notifications(database, log);
  const metrics = new WorkerMetrics();
  const claims = new HeldClaims({ id: 'w', database, notifications, log, metrics });
  const stop = new AbortController();
  const id = newId();
  const payload = { upload: newId(), file: 0, part: 0, path: '/x' };
  await db
    .insert(jobs)
    .values({ id, kind: 'copy', queue: 'remote', session: 's', owner: 'u', payload });
  const use = async () => {
    await cancelJobs(db, eq(jobs.id, id));
    await claims.renew();
    stop.abort();
    throw new WindlassError('remote_connection_failed');
  };
  const worker = makeWorkerContext({
    id: 'w',
    log,
    notifications,
    claims,
    metrics,
    stopping: stop.signal,
    database,
    sessions: { use } as unknown as SessionPool,
  });
  await runJob(worker, { id, epoch: 0 }, new Map([['copy', copy as Handler<JobKind>]]));
  claims.stop();
  expect(await read({ id })).toMatchObject({ state: 'cancelled', leaseToken: null });
});

test('a job of an ended session that nobody took ends, and whoever follows it is told', async () => {
  const { db } = database;
  const [sid, id] = [newId(), newId()];
  const ended = sql`now()`;
  await db
    .insert(sessions)
    .values({ sid, owner: 'u', hostname: 'h', username: 'u', agent: true, ended });
  await db.insert(jobs).values({
    id,
    session: sid,
    kind: 'command',
    queue: 'remote',
    owner: 'u',
    payload: {},
  });
  const log = createLog({ level: 'silent', name: 'test' });
  const notifications = new Notifications(database, log);
  const told = new Set<string>();
  for (const topic of ['cancel', 'job'] as const)
    notifications.on(topic, about => told.add(`${topic} ${about}`));
  await notifications.listen();
  await cancelJobsOfEndedSessions({ database, notifications });
  expect(await read({ id })).toMatchObject({ state: 'cancelled' });
  await waitFor(() => told.has(`cancel ${id}`) && told.has(`job ${id}`), { what: 'both words' });
  await notifications.close();
});

test('a locked row keeps neither the ends nor the claims beside it waiting', async () => {
  const groups = new JobGroups({ id: 'w', database, notifications: silent() });
  const succeed = (claim: Awaited<ReturnType<typeof makeHeld>>) =>
    groups.end({ claim, ending: { state: 'succeeded', result: { of: claim.id } } });
  const lock = (id: string) =>
    new Promise<() => Promise<void>>((locked, failed) => {
      const over = database.db.transaction(async tx => {
        await tx.select().from(jobs).where(eq(jobs.id, id)).for('update');
        await new Promise<void>(release =>
          locked(async () => {
            release();
            await over;
          }),
        );
      });
      over.catch(failed);
    });
  const held = [await makeHeld(), await makeHeld(), await makeHeld()] as const;
  const unlock = await lock(held[1].id);
  const ends = held.map(succeed);
  await Promise.all([ends[0], ends[2]]);
  expect(await read(held[1])).toMatchObject({ finished: null });
  await unlock();
  await Promise.all(ends);
  for (const claim of held)
    expect(await read(claim)).toMatchObject({ state: 'succeeded', result: { of: claim.id } });

  const waiting = [await makeHeld(), await makeHeld()] as const;
  for (const { id } of waiting)
    await database.db
      .update(jobs)
      .set({ leaseToken: null, kind: 'command' })
      .where(eq(jobs.id, id));
  const unlockWaiting = await lock(waiting[0].id);
  const tokens = waiting.map(() => newId());
  const claims = waiting.map(({ id }, n) => groups.claim({ id, epoch: 0 }, tokens[n] ?? ''));
  claims[0]?.catch(() => {});
  expect(await claims[1]).toMatchObject({ id: waiting[1].id, leaseToken: tokens[1] });
  // It would keep the lease from renewal.
  await expect(claims[0]).rejects.toMatchObject({ cause: { code: '55P03' } });
  await unlockWaiting();
});

test('in a group each end and each claim is judged by itself', async () => {
  const groups = new JobGroups({ id: 'w', database, notifications: silent() });
  const [good, stale] = [await makeHeld(), await makeHeld()];
  const ending = { state: 'failed', error: { code: 'internal', detail: 'nul \0' } } as const;
  const ends = await Promise.allSettled(
    [good, { ...stale, token: 'old' }].map(claim => groups.end({ claim, ending })),
  );
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(await read(stale)).toMatchObject({ state: 'running', finished: null });
  const unclaimed = { leaseToken: null, kind: 'command', epoch: 3 };
  const [present, past] = [await makeHeld(unclaimed), await makeHeld(unclaimed)];
  const claims = await Promise.all([
    groups.claim({ id: present.id, epoch: 3 }, newId()),
    groups.claim({ id: past.id, epoch: 2 }, newId()),
    // It came twice.
    groups.claim({ id: present.id, epoch: 3 }, newId()),
  ]);
  // The two for one job are in groups that run beside each other: either may be first.
  expect(claims.flatMap(row => row?.id ?? [])).toEqual([present.id]);
  expect(claims[1]).toBeUndefined();
});
