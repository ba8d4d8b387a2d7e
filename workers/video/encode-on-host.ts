import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { WindlassError } from '../../shared/errors.ts';
import type { JobContext } from '../context.ts';
import { isUnavailable, OBJECT_STORE, retry } from '../engine/retry.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { runOnHost } from '../runs/run-on-host.ts';
import type { RunEnd } from '../runs/run-state.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import { FfmpegProgress } from './ffmpeg-progress.ts';
import type { FrameKind } from './frame-header.ts';
import { canHostEncode, HOST_VIDEO, hostEncodeScript } from './host-encode-script.ts';
import { inspectFrames } from './inspect-frames.ts';
import { toHostVideoError } from './video-error.ts';
import { tooSlow, videoLimits } from './video-limits.ts';

type VideoContext = JobContext<'video'>;

/** Of the end of ffmpeg's standard error, for the error's record. */
const MAX_STDERR_BYTES = 8 << 10;

/** The path of the host's ffmpeg, if that can encode this type of video. */
export async function findHostEncoder(context: VideoContext): Promise<string | undefined> {
  const found = await withSession(context, async session => (await session.agent()).ffmpeg());
  return found && canHostEncode(found.encoders, context.payload.type) ? found.path : undefined;
}

interface HostVideo {
  object: string;
  pictures: Pictures & { kind: FrameKind };
  ffmpeg: string;
}

/**
 * Encodes the video on the host, exactly once, and validates all frames meanwhile; then fetches it, stores it under the key
 * `object` and returns its size in bytes. Undefined if the worker must encode it: the frames are of several kinds, or the
 * host's ffmpeg failed.
 */
export async function encodeOnHost(
  context: VideoContext,
  { object, pictures, ffmpeg }: HostVideo,
): Promise<number | undefined> {
  const { payload } = context;
  const unusable = new AbortController();
  const validating = inspectFrames(context, payload.images).then(validator => {
    if (!validator.ok) unusable.abort(validator.toError());
    else if (validator.needsDecode)
      unusable.abort(
        new WindlassError('bad_frames', { detail: 'The frames are of several kinds.' }),
      );
    return validator;
  });
  const output = new HostOutput(context);
  const limits = videoLimits(context.worker.config);
  const overdue = setTimeout(() => unusable.abort(tooSlow(limits.seconds)), limits.seconds * 1_000);
  const running = runOnHost(
    context,
    { script: reportFile(hostEncodeScript({ ...payload, pictures, ffmpeg, limits })) },
    {
      stored: () => ({ stdout: 0, stderr: 0 }),
      take: async (stream, bytes) => output.take(stream, bytes),
      acknowledge: () => output.begin(),
      limit: unusable.signal,
    },
  );
  const [validated, ran] = await Promise.allSettled([validating, running]);
  clearTimeout(overdue);
  if (validated.status === 'rejected') throw validated.reason;
  validated.value.assertUsable();
  if (validated.value.needsDecode && payload.encode !== 'host') return undefined;
  if (ran.status === 'rejected') throw ran.reason;
  const failure = output.failureOf(ran.value);
  // The frames are valid, so the host's ffmpeg may be too old for these options.
  if (failure?.code === 'video_failed' && payload.encode !== 'host') {
    context.log.info(
      { err: failure },
      'encoding on the host failed; this worker encodes the video',
    );
    return undefined;
  }
  if (failure) throw failure;
  return fetchVideo(context, { object, directory: output.directory, size: output.size });
}

/**
 * Wraps the script to print first the run's directory and last the video's size. Only the end of standard error is kept:
 * there may be one line for each frame, and the agent blocks a run whose output is not acknowledged. sh has no pipefail,
 * so the exit status comes on a descriptor of its own.
 */
function reportFile(script: string): string {
  return `echo "run=$WINDLASS_RUN"
exec 5>&1
code=$({ { (
${script}
) 2>&1 >&5 5>&- 6>&-; echo "$?" >&6; } | tail -c ${MAX_STDERR_BYTES} >&2 5>&- 6>&-; } 6>&1)
exec 5>&-
[ "$code" = 0 ] || exit "\${code:-1}"
echo "size=$(($(wc -c <"$WINDLASS_RUN/${HOST_VIDEO}")))"
`;
}

/** Parses the output of the run, again from its first byte after each reconnection. */
class HostOutput {
  readonly #context: VideoContext;
  #progress = new FfmpegProgress();
  #stdout = '';
  #stderr = '';

  constructor(context: VideoContext) {
    this.#context = context;
  }

  begin(): void {
    this.#progress = new FfmpegProgress();
    this.#stdout = '';
    this.#stderr = '';
  }

  take(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    const text = bytes.toString('latin1');
    if (stream === 'stderr') {
      this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_BYTES);
      return;
    }
    this.#stdout += text;
    if (!this.#progress.add(text)) return;
    const share = this.#progress.frames / this.#context.payload.images.length;
    this.#context.progress(share * 0.95, 'Encoding on the host.');
  }

  get directory(): string {
    return Buffer.from(/^run=(.*)$/m.exec(this.#stdout)?.[1] ?? '', 'latin1').toString('utf8');
  }

  get size(): number {
    return Number(/^size=(\d+)$/m.exec(this.#stdout)?.[1]);
  }

  failureOf({ code }: RunEnd): WindlassError | undefined {
    if (code === 0 && this.size > 0) return undefined;
    const stderr = Buffer.from(this.#stderr, 'latin1').toString('utf8');
    return toHostVideoError({ returncode: code, stderr });
  }
}

/** Copies the finished file from the run's directory to the store; after a lost connection again, under the same key. */
async function fetchVideo(
  context: VideoContext,
  video: { object: string; directory: string; size: number },
): Promise<number> {
  const { worker, signal } = context;
  context.progress(0.96, 'Fetching the video from the host.');
  const fetchOnce = async () => {
    const fetched = await withSession(context, async session => {
      const command = `cat ${quoteWord(`${video.directory}/${HOST_VIDEO}`)}`;
      const channel = await session.exec(command, signal);
      channel.stdin.end();
      const bytes = new PassThrough();
      const [stored] = await Promise.all([
        worker.objects.put(video.object, bytes, { signal }),
        pipeline(channel.stdout, bytes, { signal }),
      ]).catch((error: unknown) => {
        channel.destroy();
        // Reconnecting does not help: the store is unavailable.
        if (isUnavailable(error)) return [error] as const;
        throw error;
      });
      if (stored instanceof WindlassError || stored === video.size) return stored;
      await worker.objects.remove(video.object);
      throw new WindlassError('remote_connection_failed', {
        detail: `Only ${stored} of the video's ${video.size} bytes arrived.`,
      });
    });
    if (fetched instanceof WindlassError) throw fetched;
    return fetched;
  };
  return retry(fetchOnce, {
    ...OBJECT_STORE,
    signal,
    onWait: () => context.progress(0.99, 'Waiting for the object store.'),
  });
}
