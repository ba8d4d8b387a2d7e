import { eq, inArray, sql } from 'drizzle-orm';
import { beforeEach, expect, test } from 'vitest';
import type { Database } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import {
  chunks,
  jobs,
  leftoverRuns,
  models,
  parts,
  pendingDeletions,
  projects,
  segments,
  sessions,
  uploads,
  videoSegments,
} from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import { removeSegmentsOfEndedVideos } from '../../workers/upkeep/expired-rows.ts';
import { endIdleUploads } from '../../workers/upkeep/idle-uploads.ts';
import { removeOldJobs } from '../../workers/upkeep/job-retention.ts';
import { forgetLeftoverRuns, removeOldSessions } from '../../workers/upkeep/session-retention.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('retention');
const DAYS = 30;
const DAY_MS = 86_400_000;
let database: Database;

beforeEach(async () => {
  database = given.database();
  await database.db.execute(
    sql`truncate jobs, job_chunks, job_segments, sessions, leftover_runs, pending_deletions, uploads cascade`,
  );
});

function contextFor(days = DAYS) {
  const told: number[] = [];
  const context = {
    database,
    config: { JOB_RETENTION_DAYS: days },
    metrics: { jobsRemoved: (count: number) => void told.push(count) },
    stopping: new AbortController().signal,
  };
  return { context, told };
}
const retain = async (days?: number) => {
  const { context, told } = contextFor(days);
  await removeOldJobs(context);
  return told;
};

const ago = (days: number) => new Date(Date.now() - days * DAY_MS);
const old = { state: 'succeeded', finished: ago(DAYS + 0.01) } as const;

async function makeJob(set: Partial<typeof jobs.$inferInsert> = old): Promise<string> {
  const id = newId();
  const basis = { id, kind: 'command', queue: 'remote', owner: 'o', payload: {} };
  await database.db.insert(jobs).values({ ...basis, ...set });
  return id;
}

/** Makes `count` jobs that ended long ago, with a chunk of output each. */
async function makeMany(count: number, set: { bytes?: number } = {}): Promise<void> {
  const { bytes = 1 } = set;
  await database.db.execute(sql`
    insert into jobs (id, kind, queue, owner, payload, state, finished, stdout_bytes)
    select 'many-' || n, 'command', 'remote', 'o', '{}', 'succeeded', now() - interval '31 days', ${bytes}
    from generate_series(1, ${count}) n`);
  await database.db.execute(sql`
    insert into job_chunks (job, seq, stream, start, bytes)
    select 'many-' || n, 1, 1, 0, 'x' from generate_series(1, ${count}) n`);
}

const idsOf = async () => (await database.db.select({ id: jobs.id }).from(jobs)).map(row => row.id);

test('removes what ended JOB_RETENTION_DAYS ago, and nothing that is open or younger', async () => {
  const gone = await makeJob();
  const kept = [
    await makeJob({ ...old, finished: ago(DAYS - 0.01) }),
    await makeJob({ state: 'queued', created: ago(400) }),
    await makeJob({ state: 'running', created: ago(400), leaseToken: 't' }),
  ];
  expect(await retain(0)).toEqual([]);
  expect((await idsOf()).sort()).toEqual([gone, ...kept].sort());
  expect(await retain()).toEqual([1]);
  expect((await idsOf()).sort()).toEqual([...kept].sort());
});

test('removes the output with the job, and schedules its objects for deletion', async () => {
  const { db } = database;
  const [gone, kept] = [await makeJob(), await makeJob({ ...old, finished: ago(1) })];
  await db
    .update(jobs)
    .set({ result: { object: 'videos/a/b' } })
    .where(eq(jobs.id, gone));
  for (const job of [gone, kept]) {
    await db.insert(chunks).values({ job, seq: 1, stream: 1, start: 4, bytes: Buffer.from('x') });
    await db
      .insert(segments)
      .values({ job, stream: 1, start: 0, length: 4, object: `output/${job}/1` });
  }
  await retain();
  expect((await db.select().from(chunks)).map(row => row.job)).toEqual([kept]);
  expect((await db.select().from(segments)).map(row => row.job)).toEqual([kept]);
  const scheduled = (await db.select().from(pendingDeletions)).map(row => row.object);
  expect(scheduled.sort()).toEqual([`output/${gone}/1`, 'videos/a/b']);
});

test('removes thousands in small transactions, while others work', async () => {
  await makeMany(2_500);
  expect(await retain()).toEqual([1_000, 1_000, 500]);
  expect(await idsOf()).toEqual([]);
  expect(await database.db.$count(chunks)).toBe(0);
});

test('a transaction removes few jobs of much output', async () => {
  await makeMany(5, { bytes: 40 << 20 });
  expect(await retain()).toEqual([1, 1, 1, 1, 1]);
});

test('output in very many short rows is removed a job at a time, in several statements', async () => {
  await makeMany(3);
  await database.db.execute(sql`
    insert into job_chunks (job, seq, stream, start, bytes)
    select 'many-' || job, n, 1, n, 'x' from generate_series(1, 3) job, generate_series(2, 25000) n`);
  expect(await retain()).toEqual([1, 1, 1]);
  expect(await idsOf()).toEqual([]);
  expect(await database.db.$count(chunks)).toBe(0);
});

test('waits while many objects wait for their deletion', async () => {
  await makeMany(1);
  await database.db.execute(
    sql`insert into pending_deletions (object) select 'output/x/' || n from generate_series(1, 5000) n`,
  );
  expect(await retain()).toEqual([0]);
  await database.db.delete(pendingDeletions).where(eq(pendingDeletions.object, 'output/x/1'));
  expect(await retain()).toEqual([1]);
});

test('skips what others have locked, and one worker at a time removes', async () => {
  const [locked, free] = [await makeJob(), await makeJob()];
  await database.db.transaction(async tx => {
    await tx.select().from(jobs).where(eq(jobs.id, locked)).for('update');
    expect(await retain()).toEqual([1]);
    expect(await idsOf()).toEqual([locked]);
  });
  expect(free).not.toBe(locked);
  await makeMany(3_000);
  const both = await Promise.all([retain(), retain()]);
  expect(both.flat().reduce((sum, n) => sum + n, 0)).toBe(3_001);
  expect(await idsOf()).toEqual([]);
});

test('a run that is still on its host stays known as a leftover run', async () => {
  const runAt = ago(40);
  const unknown = {
    ...old,
    state: 'failed',
    error: { code: 'outcome_unknown', detail: 'Outcome unknown.' },
    runAt,
  } as const;
  const ids = {
    ended: await makeJob({ ...old, runAt, session: 's' }),
    unknown: await makeJob({ ...unknown, session: 's' }),
    cancelled: await makeJob({ ...unknown, cancelRequested: ago(31) }),
    removed: await makeJob({ ...old, runAt, runRemoved: true }),
    never: await makeJob(),
  };
  expect(await retain()).toEqual([5]);
  const left = await database.db.select().from(leftoverRuns);
  expect(
    Object.fromEntries(
      left.map(({ id, session, mayKeepRunning }) => [id, { session, mayKeepRunning }]),
    ),
  ).toEqual({
    [ids.ended]: { session: 's', mayKeepRunning: false },
    [ids.unknown]: { session: 's', mayKeepRunning: true },
    [ids.cancelled]: { session: null, mayKeepRunning: false },
  });
  const { context } = contextFor();
  await database.db
    .update(leftoverRuns)
    .set({ since: ago(366) })
    .where(eq(leftoverRuns.id, ids.ended));
  await forgetLeftoverRuns(context);
  expect((await database.db.select().from(leftoverRuns)).map(row => row.id).sort()).toEqual(
    [ids.unknown, ids.cancelled].sort(),
  );
});

test('an upload keeps how its parse ended', async () => {
  const { db } = database;
  const [pid, mid, uid] = [newId(), newId(), newId()];
  const error = { code: 'parse_failed', detail: 'bad', errors: [{ row: 3, reason: 'x' }] };
  const job = await makeJob({ ...old, kind: 'parse', state: 'failed', error, version: 7 });
  await db.insert(projects).values({ pid, name: 'p' });
  await db.insert(models).values({ mid, project: pid, type: 't', name: 'm' });
  const basis = { owner: 'o', model: mid, parser: 'blob', parameters: {}, aids: [], input: false };
  const other = newId();
  await db.insert(uploads).values([
    { ...basis, uid, job },
    { ...basis, uid: other, job: newId() },
  ]);
  await retain();
  expect(await idsOf()).toEqual([]);
  const [row] = await db.select().from(uploads).where(eq(uploads.uid, uid));
  expect(row?.parseEnd).toMatchObject({ state: 'failed', version: 7, error });
  expect(new Date(row?.parseEnd?.finished ?? '')).toEqual(old.finished);
  const [same] = await db.select().from(uploads).where(eq(uploads.uid, other));
  expect(same?.parseEnd).toBeNull();
  // Parts that a failed parse left are removed although no record of it is left.
  const part = { file: 0, part: 0, size: 1, digest: '' };
  await db.insert(parts).values([
    { ...part, upload: uid, object: 'uploads/a/b' },
    { ...part, upload: other, object: 'uploads/c/d' },
  ]);
  const notifications = new Notifications(database, createLog({ level: 'silent', name: 'test' }));
  const { stopping } = contextFor().context;
  const config = { UPLOAD_IDLE_TIMEOUT: 86_400 };
  await endIdleUploads({ database, notifications, stopping, config });
  await notifications.close();
  expect((await db.select().from(parts)).map(row => row.upload)).toEqual([other]);
});

test('an ended session goes when none of its jobs is left, and an open one is idle since its last job', async () => {
  const { db } = database;
  const make = async (set: Partial<typeof sessions.$inferInsert>) => {
    const sid = newId();
    const basis = { sid, owner: 'o', hostname: 'h', username: 'u', agent: true };
    await db.insert(sessions).values({ ...basis, opened: ago(50), ...set });
    return sid;
  };
  const long = { ended: ago(DAYS + 0.01) };
  const gone = await make(long);
  const kept = {
    sealed: await make({ ...long, sealed: Buffer.from('x') }),
    young: await make({ ended: ago(DAYS - 0.01) }),
    withJob: await make(long),
    open: await make({ accessed: ago(40) }),
  };
  await makeJob({ ...old, finished: ago(1), session: kept.withJob });
  await makeJob({ ...old, session: kept.open });
  const { context } = contextFor();
  await retain();
  await removeOldSessions(context);
  await removeOldSessions(contextFor(0).context);
  const left = await db.select().from(sessions);
  expect(left.map(row => row.sid).sort()).toEqual(Object.values(kept).sort());
  expect(left.find(row => row.sid === kept.open)?.accessed).toEqual(old.finished);
  expect(await db.$count(sessions, inArray(sessions.sid, [gone]))).toBe(0);
});

test('segments of videos go with their objects once the job has ended', async () => {
  const { db } = database;
  const frames = { start: 0, until: 25, sure: 25, attempt: 'a', ffmpeg: 'f' };
  const addSegments = async (job: string, objects: (string | null)[]) => {
    for (const object of objects)
      await db.insert(videoSegments).values({ ...frames, id: newId(), job, object });
  };
  await addSegments(await makeJob(), ['videos/ended/1', 'videos/ended/2', null]);
  const running = await makeJob({ state: 'running' });
  await addSegments(running, ['videos/running/1', null]);
  await removeSegmentsOfEndedVideos({ database });
  await removeSegmentsOfEndedVideos({ database });
  const left = await db.select({ job: videoSegments.job }).from(videoSegments);
  expect(left).toEqual([{ job: running }, { job: running }]);
  const due = await db.select({ object: pendingDeletions.object }).from(pendingDeletions);
  expect(due.map(({ object }) => object).sort()).toEqual(['videos/ended/1', 'videos/ended/2']);
});

test('what cannot be removed from its host yet keeps nothing newer, however large that is', async () => {
  const { db } = database;
  const sid = newId();
  await db.insert(sessions).values({
    sid,
    owner: 'o',
    hostname: 'h',
    username: 'u',
    agent: false,
    opened: new Date(),
    sealed: Buffer.from('sealed'),
  });
  const stuck = await makeJob({
    ...old,
    finished: ago(DAYS + 3),
    kind: 'batch',
    session: sid,
    runAt: ago(DAYS + 4),
  });
  await makeJob({ ...old, finished: ago(DAYS + 2), stdoutBytes: 100 << 20 });
  await makeJob({ ...old, finished: ago(DAYS + 1) });
  await retain();
  expect(await idsOf()).toEqual([stuck]);
});
