import { and, eq, ne, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from '../../../shared/database/connect.ts';
import { jobs, videoSegments } from '../../../shared/database/schema.ts';
import { newId } from '../../../shared/ids.ts';
import { isSupported, SUPPORTED_VERSIONS } from '../../../shared/jobs/payload-versions.ts';
import { scheduleDeletion } from '../../../shared/storage/pending-deletions.ts';
import { keyFrameEvery } from '../plan-stills.ts';
import { chooseSplit } from './choose-split.ts';

/** The right to encode a segment: every write checks the token. */
export interface SegmentClaim {
  id: string;
  token: string;
}

export interface TakenSegment extends SegmentClaim {
  job: string;
  /** The token of the attempt at the job. */
  attempt: string;
  start: number;
  until: number;
}

export type SegmentRow = typeof videoSegments.$inferSelect;

/** The attempt at a video's job that offers segments. */
export interface OfferingClaim {
  job: string;
  token: string;
}

/** The silence after which a segment is revoked from its worker, which reports every second. */
const SILENT = sql.raw(`interval '10 seconds'`);

/** The attempt that offers it goes on: its worker has the job. */
const isWanted = sql`exists (select from jobs where jobs.id = video_segments.job
  and jobs.lease_token = video_segments.attempt and num_nonnulls(jobs.finished) = 0)`;
const isClaimed = ({ id, token }: SegmentClaim) =>
  and(eq(videoSegments.id, id), eq(videoSegments.token, token));

/**
 * Offers to helpers what its worker has begun to encode alone, and removes what earlier attempts left. An attempt that
 * no longer has the job offers nothing.
 */
export async function offerSegment(
  db: Db,
  segment: TakenSegment & { sure: number; done: number; beganMs: number },
  { worker, ffmpeg }: { worker: string; ffmpeg: string },
): Promise<void> {
  const { beganMs, ...columns } = segment;
  await db.transaction(async tx => {
    const hasJob = and(eq(jobs.id, columns.job), eq(jobs.leaseToken, columns.attempt));
    const [held] = await tx.select({ id: jobs.id }).from(jobs).where(hasJob).for('share');
    if (!held) return;
    await removeSegments(tx, columns.job, ne(videoSegments.attempt, columns.attempt));
    await tx
      .insert(videoSegments)
      .values({
        ...columns,
        worker,
        ffmpeg,
        began: sql`now() - make_interval(secs => ${beganMs / 1_000}::float8)`,
      })
      .onConflictDoNothing();
  });
}

/**
 * Reports that the segment is being encoded, and that frames up to `sure` are read without asking again. Returns what
 * is left of it and the encoded frames of the others; undefined if it was revoked.
 */
export async function keepSegment(
  db: Db,
  claim: SegmentClaim,
  { sure, done }: { sure: number; done: number },
): Promise<{ until: number; sure: number; others: number } | undefined> {
  const [row] = await db
    .update(videoSegments)
    .set({
      sure: sql`least(${videoSegments.until}, greatest(${videoSegments.sure}, ${sure}::int))`,
      done,
      seen: sql`now()`,
    })
    .where(and(isClaimed(claim), isWanted))
    .returning({
      until: videoSegments.until,
      sure: videoSegments.sure,
      others: sql<number>`(select coalesce(sum(o.done), 0)::int from video_segments o
        where o.job = video_segments.job and o.attempt = video_segments.attempt and o.id <> video_segments.id)`,
    });
  return row;
}

/**
 * Records that the segment is encoded, as this object or by the worker of the job. False if it was revoked.
 */
export async function finishSegment(
  db: Db,
  claim: SegmentClaim,
  object: string | null,
): Promise<boolean> {
  const rows = await db
    .update(videoSegments)
    .set({
      object,
      finished: sql`coalesce(${videoSegments.finished}, now())`,
      done: sql`${videoSegments.until} - ${videoSegments.start}`,
    })
    .where(and(isClaimed(claim), isWanted))
    .returning({ id: videoSegments.id });
  return rows.length > 0;
}

/** Leaves the segment to others; after a failure here, to the worker of the job. */
export async function giveBackSegment(
  db: Db,
  claim: SegmentClaim,
  { refused }: { refused: boolean },
): Promise<void> {
  await db
    .update(videoSegments)
    .set({
      token: null,
      worker: null,
      done: 0,
      refused: sql`${videoSegments.refused} or ${refused}`,
    })
    .where(and(isClaimed(claim), sql`${videoSegments.finished} is null`));
}

interface TakeOptions {
  worker: string;
  ffmpeg: string;
  /** VIDEO_SHARE_SECONDS. */
  seconds: number;
  /** Takes from this attempt only, for the worker of the job; a helper takes from any. */
  attempt?: OfferingClaim;
  /** Jobs that a helper takes nothing from, because it failed at them. */
  except?: readonly string[];
}

/**
 * Takes a segment that nobody encodes any more, or the second half of what somebody has left, if that takes long. Users
 * with the fewest helpers come first.
 */
export function takeSegment(db: Db, options: TakeOptions): Promise<TakenSegment | undefined> {
  return db.transaction(
    async tx => (await takeAbandoned(tx, options)) ?? (await splitSegment(tx, options)),
  );
}

/** Selects what may be taken, of live attempts. A helper skips what it might not understand, or another failed at. */
function takable({ attempt, ffmpeg, except = [] }: TakeOptions): SQL {
  const ofWhich = attempt
    ? sql`s.job = ${attempt.job} and s.attempt = ${attempt.token}`
    : sql`not s.refused and not ${JSON.stringify(except)}::jsonb ? s.job and j.cancel_requested is null and ${isSupported(sql`${JSON.stringify(SUPPORTED_VERSIONS)}::jsonb`)}`;
  return sql`from video_segments s join jobs j on j.id = s.job and j.lease_token = s.attempt
    where num_nonnulls(j.finished) = 0 and s.finished is null and s.ffmpeg = ${ffmpeg} and ${ofWhich}`;
}

async function takeAbandoned(tx: Tx, options: TakeOptions): Promise<TakenSegment | undefined> {
  const token = newId();
  const abandoned = sql`select s.id ${takable(options)} and (s.token is null or s.seen < now() - ${SILENT})
    order by s.start limit 1 for update of s skip locked`;
  const [row] = await tx
    .update(videoSegments)
    .set({
      token,
      worker: options.worker,
      done: 0,
      sure: videoSegments.start,
      began: sql`now()`,
      seen: sql`now()`,
    })
    .where(sql`${videoSegments.id} = any(array(${abandoned}))`)
    .returning();
  return row && { ...row, token };
}

async function splitSegment(tx: Tx, options: TakeOptions): Promise<TakenSegment | undefined> {
  const { worker, ffmpeg, seconds } = options;
  const left = sql`(s.until - greatest(s.sure, s.start + s.done))`;
  const helpers = sql`(select count(*) from video_segments o join jobs p on p.id = o.job
    where p.owner = j.owner and o.token is not null and o.finished is null)`;
  const [found] = await tx.execute<{ id: string; fps: number }>(sql`
    select s.id, (j.payload ->> 'fps')::float8 as fps ${takable(options)}
      and s.token is not null and s.seen >= now() - ${SILENT} and s.done > 0
      and ${left} * extract(epoch from s.seen - s.began) / s.done >= ${seconds}
    order by ${helpers}, ${left} desc limit 1 for update of s skip locked`);
  if (!found) return undefined;
  const [row] = await tx.select().from(videoSegments).where(eq(videoSegments.id, found.id));
  if (!row) return undefined;
  const start = chooseSplit(row, keyFrameEvery(found.fps));
  if (start === undefined) return undefined;
  await tx.update(videoSegments).set({ until: start }).where(eq(videoSegments.id, row.id));
  const { job, attempt, until } = row;
  const taken = { id: newId(), token: newId(), job, attempt, start, until };
  await tx.insert(videoSegments).values({ ...taken, sure: start, worker, ffmpeg });
  return taken;
}

/** All segments of the attempt, in their order. */
export function listSegments(db: Db, { job, token }: OfferingClaim): Promise<SegmentRow[]> {
  return db
    .select()
    .from(videoSegments)
    .where(and(eq(videoSegments.job, job), eq(videoSegments.attempt, token)))
    .orderBy(videoSegments.start);
}

/** Removes a job's segments and their objects; who encodes one ends within a second. */
export async function removeSegments(tx: Tx, job: string, which?: SQL): Promise<void> {
  const gone = await tx
    .delete(videoSegments)
    .where(and(eq(videoSegments.job, job), which))
    .returning({ object: videoSegments.object });
  await scheduleDeletion(
    tx,
    gone.map(row => row.object),
  );
}
