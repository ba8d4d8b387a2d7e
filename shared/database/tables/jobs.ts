import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  real,
  smallint,
  text,
} from 'drizzle-orm/pg-core';
import type { StoredError } from '../../errors/errors.ts';
import {
  hasEnded,
  hasSlot,
  IS_UNREACHABLE,
  isOpenByOwner,
  isWaiting,
  leavesUnremoved,
} from '../../jobs/job-conditions.ts';
import type { JobState } from '../../jobs/job-states.ts';
import type { BatchState } from '../../jobs/payloads/batch.ts';
import { bytea, count, texts, time } from './columns.ts';

/**
 * When bytes were stored: an entry for the first byte of each second, and for the first after each write of the other stream,
 * as [ms since 1970, offset in the stream, place in the order of both streams], in order. Entries of 0.1.0 have no place.
 */
export type StoredTimes = [ms: number, offset: number, seq?: number][];

/** Jobs: the source of truth for all work, and the outbox of the queue. See docs/design.md. */
export const jobs = pgTable(
  'jobs',
  {
    id: text().primaryKey(),
    kind: text().notNull(),
    queue: text().notNull(),
    owner: text().notNull(),
    session: text(),
    /** The session's host, or null. It stays when the session's row goes. */
    host: text(),
    /** See labels.ts; null in rows of 0.1.0. */
    label: text(),
    /** The name that the client gave it. */
    name: text(),
    /** The resources that the job belongs to; it is cancelled when one of them is deleted. */
    project: text(),
    model: text(),
    upload: text(),
    /** X-Request-Id of the request that started the job, for the logs. */
    requestId: text(),
    payload: jsonb().$type<unknown>().notNull(),
    /** The version in the catalog when the job was started: see payload-versions.ts. */
    payloadVersion: smallint().notNull().default(1),
    /** The bytes that the payload counts for its user: see payload-bytes.ts. Null where they are few. */
    payloadBytes: integer(),
    state: text().$type<JobState>().notNull().default('queued'),
    progress: real(),
    message: text(),
    result: jsonb().$type<unknown>(),
    error: jsonb().$type<StoredError>(),
    created: time().notNull().defaultNow(),
    started: time(),
    finished: time(),
    /** Increments with every change that a client can see. */
    version: count(),
    retryOf: text(),

    /** Only the queue entry `id-epoch` may be claimed. */
    epoch: integer().notNull().default(0),
    dispatched: time(),
    notBefore: time(),
    /** The fencing token of the leased attempt; null without a lease. */
    leaseToken: text(),
    /** Unused; the next release drops it. */
    leaseExpires: time(),
    worker: text(),
    /** Leases lost in a row without progress in between. */
    consecutiveLosses: smallint().notNull().default(0),
    cancelRequested: time(),
    /** Whether a user cancelled it. Otherwise the client of its request left, and a repeat of that request starts it again. */
    userCancelled: boolean(),

    /** Bytes stored so far. */
    stdoutBytes: count(),
    stderrBytes: count(),
    /** The output was streamed to a client while it came: it is removed an hour after the job's end. */
    outputStreamed: boolean().notNull().default(false),
    /**
     * The last sign of life of the client that waits for streamed output: see reader-signs.ts. Null in rows of older releases.
     */
    readerSeen: time(),

    /**
     * When the host was first asked to run the command, to make the directory of a batch job or to change a file; committed
     * before it is asked. The repeat of an abandoned request takes the time of that request. See run-intent.ts, also for the
     * next columns.
     */
    runAt: time(),
    /**
     * For a run of the agent, the host's boot and folder of fences; for a batch job, the directory of its present submission,
     * once made. Null for a command without an agent, and for a change of a file.
     */
    runPlace: text(),
    /** Set for a batch job, from its first submission on. */
    batch: jsonb().$type<BatchState>(),
    /** Since when the host has been unreachable, for a job that yielded its slot meanwhile. */
    unreachableSince: time(),
    /**
     * Whether the run's files were removed from the host. True from `runAt` on where there are none: for a command without an
     * agent, and a change of a file. Also true for a run whose end a failover lost, so that nobody requests it again.
     */
    runRemoved: boolean().notNull().default(false),
  },
  table => [
    // Waiting jobs by owner: those whose host is unreachable apart, released ones by their due time.
    index('jobs_waiting_by_owner')
      .on(table.queue, table.owner, sql.raw(IS_UNREACHABLE), table.notBefore, table.id)
      .where(isWaiting)
      .concurrently(),
    // What has a slot: never more rows than there are slots.
    index('jobs_held').on(table.queue, table.owner).where(hasSlot).concurrently(),
    index('jobs_due')
      .on(table.queue, table.id)
      .where(sql`finished is null and lease_token is null`),
    index('jobs_owner').on(table.owner, table.id),
    index('jobs_open').on(table.owner).where(isOpenByOwner).concurrently(),
    index('jobs_session').on(table.session, table.finished),
    // Retention removes the oldest ends first.
    index('jobs_retention').on(table.finished).where(hasEnded).concurrently(),
    index('jobs_open_project')
      .on(table.project)
      .where(sql`finished is null and project is not null`),
    index('jobs_open_model').on(table.model).where(sql`finished is null and model is not null`),
    index('jobs_open_upload').on(table.upload).where(sql`finished is null and upload is not null`),
    index('jobs_streamed_output')
      .on(table.finished)
      .where(sql`output_streamed and stdout_bytes > 0`),
    index('jobs_unremoved_runs').on(table.session).where(leavesUnremoved),
  ],
);

export type JobRow = typeof jobs.$inferSelect;

/**
 * The changes of a job that its row does not keep: a trigger writes them in the transaction of the change. See job-history.ts.
 */
export const jobHistory = pgTable(
  'job_history',
  {
    job: text()
      .notNull()
      .references(() => jobs.id, { onDelete: 'cascade' }),
    seq: smallint().notNull(),
    event: text().$type<'lease_lost' | 'claimed' | 'host_unreachable' | 'reconnected'>().notNull(),
    at: time().notNull().defaultNow(),
    worker: text(),
  },
  table => [primaryKey({ columns: [table.job, table.seq] })],
);

/**
 * The frames of a video that were found by a pattern: those that it matched, and those left out. Written once, so that every
 * attempt, and a host that encodes meanwhile, makes the same video.
 */
export const videoFrames = pgTable('video_frames', {
  job: text()
    .primaryKey()
    .references(() => jobs.id, { onDelete: 'cascade' }),
  /** JSON, deflated. */
  frames: bytea().notNull(),
});

/**
 * Frames of a video that one worker encodes, from `start` up to `until`, offered while the attempt at the job lasts. An
 * idle worker takes the second half of what is left of a segment, whose `until` decreases (decision 57).
 */
export const videoSegments = pgTable(
  'video_segments',
  {
    id: text().primaryKey(),
    job: text()
      .notNull()
      .references(() => jobs.id, { onDelete: 'cascade' }),
    /** The token of the attempt at the job. */
    attempt: text().notNull(),
    start: integer().notNull(),
    until: integer().notNull(),
    /** Frames before this one are never taken away from its worker, which may read them without asking again. */
    sure: integer().notNull(),
    /** The number of encoded frames. */
    done: integer().notNull().default(0),
    /** The token of its encoder; null where a worker gave it back. */
    token: text(),
    worker: text(),
    began: time().notNull().defaultNow(),
    /** The last sign of life of its worker. */
    seen: time().notNull().defaultNow(),
    finished: time(),
    /** The encoded segment; null where the worker of the job itself has it. */
    object: text(),
    /** Whether a helping worker failed at it: then the job's own worker encodes it, and fails where it must. */
    refused: boolean().notNull().default(false),
    /** Segments that different programs encode may not join. */
    ffmpeg: text().notNull(),
  },
  table => [index('video_segments_job').on(table.job)],
);

/**
 * Runs whose files may still be on their hosts although the record of their job was removed: what is left of the job, until
 * the run is removed too.
 */
export const leftoverRuns = pgTable(
  'leftover_runs',
  {
    /** The id of the job. */
    id: text().primaryKey(),
    session: text(),
    runAt: time().notNull(),
    /** Whether its user was told that the command may still run. */
    mayKeepRunning: boolean().notNull(),
    since: time().notNull().defaultNow(),
  },
  table => [
    index('leftover_runs_session').on(table.session),
    index('leftover_runs_since').on(table.since),
  ],
);

/** Chunks of output, in the order in which the job's one writer appends them; `stream` is 1 (stdout) or 2 (stderr). */
export const chunks = pgTable(
  'job_chunks',
  {
    job: text().notNull(),
    seq: bigint({ mode: 'number' }).notNull(),
    stream: smallint().notNull(),
    start: bigint({ mode: 'number' }).notNull(),
    bytes: bytea().notNull(),
    /** Null in rows of 0.1.0. */
    at: time().defaultNow(),
  },
  table => [
    primaryKey({ columns: [table.job, table.seq] }),
    index('job_chunks_start').on(table.job, table.stream, table.start),
  ],
);

/** Output that was rolled up from chunks into objects. */
export const segments = pgTable(
  'job_segments',
  {
    job: text().notNull(),
    stream: smallint().notNull(),
    start: bigint({ mode: 'number' }).notNull(),
    length: bigint({ mode: 'number' }).notNull(),
    object: text().notNull(),
    /** When its bytes were stored, see output-times.ts; null in rows of 0.1.0. */
    times: jsonb().$type<StoredTimes>(),
  },
  table => [primaryKey({ columns: [table.job, table.stream, table.start] })],
);

/** The job that an Idempotency-Key started; `body` is an HMAC of the request, which may hold a password. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    owner: text().notNull(),
    route: text().notNull(),
    key: text().notNull(),
    body: text().notNull(),
    job: text().notNull(),
    created: time().notNull().defaultNow(),
  },
  table => [
    primaryKey({ columns: [table.owner, table.route, table.key] }),
    index('idempotency_created').on(table.created),
  ],
);

/**
 * The lease of all claims of a worker (decision 31). The row is narrow, in pages with room for its next version, so
 * that a renewal every 3 s changes no index and no job. No lease is reclaimed by `expires`: see
 * workers/engine/expired-leases.ts.
 */
export const leases = pgTable('leases', {
  worker: text().primaryKey(),
  expires: time().notNull(),
});

/** Heartbeats of workers; one seen less than 10 s ago is alive. `slots`: jobs of each queue that it runs at once. */
export const workers = pgTable('workers', {
  id: text().primaryKey(),
  host: text().notNull(),
  pid: integer().notNull(),
  slots: jsonb().$type<Record<string, number>>().notNull(),
  /** See payload-versions.ts. */
  supports: jsonb('understands').$type<Record<string, number>>(),
  /** Whether an administrator wants it to take no more jobs. */
  draining: boolean().notNull().default(false),
  /** The release of the worker's program. */
  release: text(),
  /** Whether it dispatches, and does the periodic work; null where an older release does not say. */
  upkeep: boolean(),
  /** Ids of the keys that it opens credentials with; null where it opens none. */
  sealKeys: texts(),
  /** The worker's metrics in prom-client's JSON, for /metrics of the API. */
  metrics: jsonb().$type<unknown>(),
  started: time().notNull().defaultNow(),
  seen: time().notNull().defaultNow(),
});
