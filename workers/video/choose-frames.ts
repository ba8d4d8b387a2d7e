import { promisify } from 'node:util';
import { deflate, inflate } from 'node:zlib';
import { eq } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { videoFrames } from '../../shared/database/schema.ts';
import type { Payload } from '../../shared/jobs/catalog.ts';
import type { JobContext } from '../context.ts';
import type { FrameGap } from './frame-pattern.ts';
import type { Frame, FrameProblem } from './frame-validator.ts';
import { examineFrames } from './inspect-frames.ts';
import { listFrames, toFrames } from './list-frames.ts';

type VideoContext = JobContext<'video'>;

const MAX_BYTES = 2 ** 30;

/** The frames of a video, and those that were left out. */
export interface ChosenFrames {
  frames: readonly Frame[];
  /** The first hundred, and how many all were; only where frames may be left out. */
  skipped?: FrameProblem[];
  skippedCount?: number;
  gap?: FrameGap;
}

/**
 * The frames of the video. Directories and files may change meanwhile, so the choice is recorded for later attempts
 * before anything is made of it.
 */
export async function chooseFrames(context: VideoContext): Promise<ChosenFrames> {
  const { images, onBadFrame } = context.payload;
  if (images && onBadFrame !== 'skip') return listFrames(context);
  return (await recall(ofJob(context))) ?? (await remember(context, await choose(context)));
}

/** The recorded choice of chooseFrames(), for another worker that encodes some of the frames. */
export async function recallFrames(
  db: Db,
  { job, payload }: { job: string; payload: Payload<'video'> },
): Promise<readonly Frame[]> {
  const chosen = await recall({ db, job });
  return chosen?.frames ?? toFrames(payload.images ?? []);
}

const ofJob = ({ job, worker }: VideoContext) => ({ db: worker.database.db, job: job.id });

async function choose(context: VideoContext): Promise<ChosenFrames> {
  const listed = await listFrames(context);
  if (context.payload.onBadFrame !== 'skip') return listed;
  const examined = await examineFrames(context, listed.frames);
  examined.assertTypical();
  const frames = listed.frames.filter(({ index }) => !examined.isBad(index));
  if (frames.length === 0) throw examined.toError();
  return { ...listed, frames, skipped: examined.problems, skippedCount: examined.bad };
}

async function recall({ db, job }: { db: Db; job: string }): Promise<ChosenFrames | undefined> {
  const [row] = await db
    .select({ frames: videoFrames.frames })
    .from(videoFrames)
    .where(eq(videoFrames.job, job));
  if (!row) return undefined;
  const text = await promisify<Buffer, object, Buffer>(inflate)(row.frames, {
    maxOutputLength: MAX_BYTES,
  });
  return JSON.parse(text.toString('utf8')) as ChosenFrames;
}

/** Records the choice and returns the valid one: of concurrent attempts the first writer's. */
async function remember(context: VideoContext, chosen: ChosenFrames): Promise<ChosenFrames> {
  const { job, worker } = context;
  // JSON.stringify() escapes the lone surrogates that stand for bytes: see decodePath().
  const frames = await promisify<string, Buffer>(deflate)(JSON.stringify(chosen));
  await worker.database.db
    .insert(videoFrames)
    .values({ job: job.id, frames })
    .onConflictDoNothing();
  return (await recall(ofJob(context))) ?? chosen;
}
