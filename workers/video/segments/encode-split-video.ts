import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { videoSegments } from '../../../shared/database/schema.ts';
import { newId } from '../../../shared/ids.ts';
import { MAX_TIMER_MS } from '../../../shared/process/max-timer.ts';
import type { JobContext } from '../../context.ts';
import { AutoResetEvent } from '../../engine/auto-reset-event.ts';
import { DATABASE, retry } from '../../engine/retry.ts';
import { withSession } from '../../ssh/reconnect.ts';
import type { EncodedVideo } from '../encode-video.ts';
import { describeEncoding } from '../ffmpeg-progress.ts';
import { findFfmpeg, findFfmpegVersion } from '../find-ffmpeg.ts';
import type { Size } from '../frame-info.ts';
import type { Frame } from '../frame-validator.ts';
import type { ScratchVideo } from '../store-video.ts';
import { tooSlow, videoLimits } from '../video-limits.ts';
import { encodeSegment } from './encode-segment.ts';
import { fetchSegment } from './fetch-segment.ts';
import { joinSegments } from './join-segments.ts';
import { Segment, SegmentRevoked } from './segment.ts';
import {
  finishSegment,
  listSegments,
  offerSegment,
  removeSegments,
  type SegmentRow,
  takeSegment,
} from './segment-rows.ts';

/** The encoder is only then as fast as it will be. */
const OFFERED_AFTER_MS = 1_000;
/** Helpers say by a notification that they are done, which may be lost. */
const LOOK_MS = 1_000;

const VIDEO = 'video';

interface Video {
  frames: readonly Frame[];
  /** The scratch directory. */
  directory: string;
  /** Decodes every frame before ffmpeg gets it. Such a video is not split, and has no stills yet. */
  decodeAll?: boolean;
}

/**
 * Encodes a video in the scratch directory: a short one as one segment with its stills, a long one with idle workers,
 * which take the ends of what is left (decision 57). Waits only for segments that are nearly finished, then joins all.
 */
export async function encodeSplitVideo(
  context: JobContext<'video'>,
  video: Video,
): Promise<ScratchVideo> {
  const split = new SplitVideo(context, video);
  try {
    return await split.make();
  } finally {
    await split.close();
  }
}

class SplitVideo {
  readonly #context: JobContext<'video'>;
  readonly #video: Video;
  readonly #overdue = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal;
  /** The files of the segments that were encoded here. */
  readonly #files = new Map<string, string>();
  #ffmpeg = '';
  #isOffered = false;
  /** Frames that are encoded: what a lost worker had is not counted back. */
  #most = 0;
  /** Determined by the first frame, whoever encodes it. */
  #size: Size = { width: 0, height: 0 };

  constructor(context: JobContext<'video'>, video: Video) {
    this.#context = context;
    this.#video = video;
    const { seconds } = videoLimits(context.worker.config);
    const end = () => this.#overdue.abort(tooSlow(seconds));
    this.#timer = setTimeout(end, Math.min(seconds * 1_000, MAX_TIMER_MS));
    this.#signal = AbortSignal.any([context.signal, this.#overdue.signal]);
  }

  async make(): Promise<ScratchVideo> {
    const { job } = this.#context;
    const { frames, directory } = this.#video;
    const first = new Segment(this.#context.worker, {
      job: job.id,
      start: 0,
      until: frames.length,
    });
    const stillPaths = {
      poster: join(directory, 'poster.jpg'),
      sprite: join(directory, 'sprite.jpg'),
    };
    // An ffmpeg that has failed to make them beside the video is asked for the video alone.
    const beside = this.#video.decodeAll ? undefined : stillPaths;
    const made = await this.#encode(first, { name: VIDEO, stillPaths: beside });
    if (made && first.until === frames.length) {
      const { tiles } = made;
      const { poster, sprite } = stillPaths;
      return {
        video: { path: join(directory, VIDEO) },
        stills: tiles && { poster: { path: poster }, sprite: { path: sprite }, tiles },
        frames: frames.length,
        size: this.#size,
      };
    }
    if (made && first.claim) {
      await rename(join(directory, VIDEO), join(directory, first.claim.id));
      await this.#finish(first);
    }
    await this.#encodeRest();
    await this.#join();
    return {
      video: { path: join(directory, VIDEO) },
      frames: frames.length,
      size: this.#size,
    };
  }

  /** Ends what others encode of it. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#isOffered) return;
    const { worker, job, token, log } = this.#context;
    // Another attempt at the job may have begun while this process stood still.
    const own = eq(videoSegments.attempt, token);
    const remove = () => worker.database.db.transaction(tx => removeSegments(tx, job.id, own));
    await retry(remove, { ...DATABASE, forMs: 5_000 }).catch((err: unknown) =>
      log.warn({ err }, 'the segments of a video could not be removed; upkeep does that later'),
    );
  }

  /** Undefined where another worker has it. */
  async #encode(
    segment: Segment,
    { name, stillPaths }: { name: string; stillPaths?: { poster: string; sprite: string } },
  ): Promise<EncodedVideo | undefined> {
    const { payload, worker } = this.#context;
    const { frames, directory, decodeAll } = this.#video;
    const encode = () =>
      withSession(
        this.#context,
        session =>
          encodeSegment({
            session,
            payload,
            frames,
            segment,
            stillPaths,
            decodeAll,
            outputPath: join(directory, name),
            limits: videoLimits(worker.config),
            onSize: size => {
              this.#size = size;
            },
            onProgress: () => {
              this.#report(segment.others + segment.done);
              if (!this.#isOffered && !decodeAll) this.#offerIfLong(segment);
            },
            signal: this.#signal,
          }),
        { signal: () => this.#signal },
      );
    try {
      return await encode();
    } catch (error) {
      this.#signal.throwIfAborted();
      if (error instanceof SegmentRevoked) return undefined;
      throw error;
    } finally {
      segment.close();
    }
  }

  #offerIfLong(segment: Segment): void {
    const { worker, job, token, log } = this.#context;
    const { VIDEO_SHARE_SECONDS: seconds } = worker.config;
    if (seconds === 0 || segment.elapsedMs < OFFERED_AFTER_MS || segment.secondsLeft < seconds)
      return;
    this.#isOffered = true;
    log.debug({ seconds: segment.secondsLeft }, 'a video is offered to idle workers');
    segment.split(async sure => {
      this.#ffmpeg = await findFfmpegVersion();
      const claim = { id: newId(), token: newId() };
      const { start, until, done, elapsedMs: beganMs } = segment;
      const offered = { ...claim, job: job.id, attempt: token, start, until, sure, done, beganMs };
      const by = { worker: worker.id, ffmpeg: this.#ffmpeg };
      await retry(() => offerSegment(worker.database.db, offered, by), DATABASE);
      worker.notifications.publish('segment', job.id);
      return claim;
    });
  }

  /** Encodes what nobody has, until all segments are finished. */
  async #encodeRest(): Promise<void> {
    const { worker, job, token } = this.#context;
    const { db } = worker.database;
    const attempt = { job: job.id, token };
    const { VIDEO_SHARE_SECONDS: seconds } = worker.config;
    const options = { worker: worker.id, ffmpeg: this.#ffmpeg, seconds, attempt };
    const changed = new AutoResetEvent();
    const unsubscribe = worker.notifications.on('segment', id => {
      if (id === job.id) changed.set();
    });
    try {
      for (;;) {
        const taken = await retry(() => takeSegment(db, options), DATABASE);
        if (taken) {
          const segment = new Segment(worker, taken);
          segment.hold(taken);
          if (await this.#encode(segment, { name: taken.id })) await this.#finish(segment);
          continue;
        }
        const rows = await retry(() => listSegments(db, attempt), DATABASE);
        this.#report(rows.reduce((sum, { done }) => sum + done, 0));
        if (rows.every(({ finished }) => finished)) return;
        await changed.wait(this.#signal, LOOK_MS);
        this.#signal.throwIfAborted();
      }
    } finally {
      unsubscribe();
    }
  }

  async #finish(segment: Segment): Promise<void> {
    const { claim } = segment;
    if (!claim) return;
    const { db } = this.#context.worker.database;
    // Another worker may have taken it, and a part of it another one.
    if (await retry(() => finishSegment(db, claim, null), DATABASE))
      this.#files.set(claim.id, claim.id);
    else await rm(join(this.#video.directory, claim.id), { force: true });
  }

  #report(encoded: number): void {
    const { frames } = this.#video;
    this.#most = Math.max(this.#most, Math.min(encoded, frames.length));
    const fraction = this.#most / frames.length;
    this.#context.progress(fraction * 0.98, describeEncoding(this.#most, frames));
  }

  async #join(): Promise<void> {
    const { worker, job, token, payload } = this.#context;
    const { frames, directory } = this.#video;
    this.#context.progress(0.98, 'storing the video: joining what several workers encoded');
    const rows = await retry(
      () => listSegments(worker.database.db, { job: job.id, token }),
      DATABASE,
    );
    assertWhole(rows, frames.length);
    for (const row of rows) await this.#fetch(row);
    await joinSegments({
      ffmpeg: await findFfmpeg(),
      directory,
      name: VIDEO,
      segments: rows.map(({ id, start, until }) => ({ name: id, start, until })),
      type: payload.type,
      fps: payload.fps,
      limits: videoLimits(worker.config),
      signal: this.#signal,
    });
  }

  async #fetch({ id, object }: SegmentRow): Promise<void> {
    if (this.#files.has(id)) return;
    const { objects, config } = this.#context.worker;
    if (!object) throw new Error(`nobody has the segment ${id}`);
    const { keepFree } = videoLimits(config);
    const path = join(this.#video.directory, id);
    await fetchSegment(objects, { object, path, keepFree, signal: this.#signal });
  }
}

/** Each frame is in one segment. */
function assertWhole(rows: SegmentRow[], length: number): void {
  let at = 0;
  for (const { start, until } of rows) {
    if (start !== at)
      throw new Error(`a video has segments that end at ${at} and begin at ${start}`);
    at = until;
  }
  if (at !== length) throw new Error(`a video of ${length} frames has segments of ${at}`);
}
