import { errorOfJob, type Job } from '../../../clients/typescript/src/jobs.ts';
import type { Video } from '../../../clients/typescript/src/video.ts';
import { CommandError } from '../../command-error.ts';
import { printNotice } from '../../output/print-notice.ts';
import { printRecord } from '../../output/print-records.ts';
import { ProgressLine } from '../../output/progress.ts';
import { abortWhenInterrupted } from '../abort-when-interrupted.ts';
import { cancelWhenInterrupted } from '../cancel-when-interrupted.ts';
import { connect } from '../connect.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';
import { findFrames } from '../frames-on-host.ts';
import { requireWritable, saveFile } from '../save-file.ts';

export interface VideoOptions extends LoginChoice {
  output: string;
  fps?: number;
  width?: number;
  quality?: number;
  codec?: 'h264' | 'vp9' | 'av1';
  background?: string;
  label?: 'frame' | 'name';
  first?: number;
  last?: number;
  step?: number;
  skipBad?: boolean;
  project?: string;
  /** `--key` is a file with a private key. */
  cacheKey?: string;
  name?: string;
  json?: boolean;
}

/** What a video may have that people should know. */
interface VideoResult {
  frames: number;
  skipped?: BadFrame[];
  skippedCount?: number;
  gap?: { path: string; after: number };
  uncached?: string;
}

interface BadFrame {
  path: string;
  reason: string;
}

/** How many frames are named. */
const MAX_NAMED = 20;
/** The detail of an error names so many. */
const NAMED_ALREADY = 3;

/** `windlass video`: of frames on a host, into a file here. */
export async function makeVideo(
  host: string,
  words: string[],
  { output, user, key, jumpUser, jumpKey, json, skipBad, cacheKey, ...options }: VideoOptions,
): Promise<void> {
  const contentType = typeOf(output);
  await requireWritable(output);
  const windlass = await connect();
  const session = await findOrOpenSession(windlass, host, { user, key, jumpUser, jumpKey });
  const frames = await findFrames(session, words);
  const asked = session.video({
    ...frames,
    contentType,
    'on-bad-frame': skipBad ? 'skip' : undefined,
    key: cacheKey,
    ...options,
  });
  const interruption = cancelWhenInterrupted(
    windlass,
    asked.then(video => video.job),
  );
  const video = await asked;
  const line = new ProgressLine();
  const job = await windlass
    .wait(video.job, {
      onChange: ({ progress, message }) => line.show(progress ?? 0, message ?? ''),
    })
    .finally(() => line.end());
  interruption.stop();
  if (job.state === 'cancelled' && interruption.status !== undefined) {
    process.exitCode = interruption.status;
    return;
  }
  if (job.state !== 'succeeded') {
    if (json) await printRecord(job, { json });
    else tellBadFrames(job);
    throw errorOfJob(job);
  }
  const status = await download(video, output);
  if (status !== undefined) {
    process.exitCode = status;
    return;
  }
  const result = job.result as VideoResult;
  const sentence = [`${output}: ${result.frames} frames`, ...describeRest(result)].join(', ');
  await printRecord(job, { sentence, json });
  if (json) return;
  nameFrames(result.skipped ?? [], result.skippedCount ?? 0);
  if (result.uncached) printNotice(`not in the cache of the project: ${result.uncached}`);
}

/** Frames that are there and not in the video. */
function describeRest({ skippedCount = 0, gap }: VideoResult): string[] {
  return [
    ...(skippedCount > 0 ? [`${skippedCount} left out`] : []),
    ...(gap ? [`${gap.after} more after a gap at ${gap.path}: give --last to have them`] : []),
  ];
}

/** More of them than the error names. */
function tellBadFrames({ error }: Job): void {
  const { frames = [], count = 0 } = (error ?? {}) as { frames?: BadFrame[]; count?: number };
  if (count > NAMED_ALREADY) nameFrames(frames, count);
}

function nameFrames(frames: BadFrame[], count: number): void {
  const named = frames.slice(0, MAX_NAMED);
  for (const { path, reason } of named) printNotice(`${path} ${reason}`);
  if (count > named.length) printNotice(`and ${count - named.length} more`);
}

/** Where it fails, the work is not lost: it says how to get the video. The status to end with where a signal ended it. */
async function download(video: Video, output: string): Promise<number | undefined> {
  const interruption = abortWhenInterrupted();
  const { signal } = interruption;
  try {
    await saveFile(output, video.chunks({ signal }), { signal });
    return undefined;
  } catch (error) {
    printNotice(`the video is kept for a day: windlass open ${video.job}`);
    if (signal.aborted) return interruption.status;
    throw error;
  } finally {
    interruption.stop();
  }
}

function typeOf(output: string): 'video/mp4' | 'video/webm' {
  if (output.endsWith('.mp4')) return 'video/mp4';
  if (output.endsWith('.webm')) return 'video/webm';
  throw new CommandError(`${output} is neither .mp4 nor .webm.`, {
    hint: 'Name the output FILE.mp4 or FILE.webm.',
  });
}
