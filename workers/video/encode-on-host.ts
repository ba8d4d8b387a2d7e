import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { WindlassError } from '../../shared/errors.ts';
import type { JobContext } from '../context.ts';
import { isUnavailable, OBJECT_STORE, retry } from '../engine/retry.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { type RunEnd, runOnHost } from '../runs/run-on-host.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import type { FrameKind } from './frames.ts';
import { canHostEncode, HOST_VIDEO, hostEncodeScript } from './host-encode-script.ts';
import { inspectFrames } from './inspect-frames.ts';
import { ProgressReader } from './progress.ts';
import { toHostVideoError } from './video-error.ts';

type VideoContext = JobContext<'video'>;

/** What ffmpeg says on standard error is kept up to here, for the failure's record. */
const STDERR_KEPT = 8 << 10;

/** The host's ffmpeg, when it can make this kind of video. */
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
 * Has the host make the video, exactly once, while all frames are looked at; fetches it, stores it under the key and
 * returns its size in bytes. Undefined when it must be made here: the frames are of several kinds, or the host failed.
 */
export async function encodeOnHost(
  context: VideoContext,
  { object, pictures, ffmpeg }: HostVideo,
): Promise<number | undefined> {
  const { payload } = context;
  const unusable = new AbortController();
  const checking = inspectFrames(context, payload.images).then(check => {
    if (!check.ok) unusable.abort(check.toError());
    else if (check.needsDecode)
      unusable.abort(
        new WindlassError('bad_frames', { detail: 'The frames are of several kinds.' }),
      );
    return check;
  });
  const report = new RunReport(context);
  const running = runOnHost(
    context,
    { script: tellWhere(hostEncodeScript({ ...payload, pictures, ffmpeg })) },
    {
      stored: () => ({ stdout: 0, stderr: 0 }),
      take: async (stream, bytes) => report.take(stream, bytes),
      acknowledge: () => report.begin(),
      limit: unusable.signal,
    },
  );
  const [checked, ran] = await Promise.allSettled([checking, running]);
  if (checked.status === 'rejected') throw checked.reason;
  checked.value.assertUsable();
  if (checked.value.needsDecode && payload.encode !== 'host') return undefined;
  if (ran.status === 'rejected') throw ran.reason;
  const failure = report.failureOf(ran.value);
  // The frames are good, so it may be the host's ffmpeg, too old for our options: ours can try.
  if (failure?.code === 'video_failed' && payload.encode !== 'host') {
    context.log.info({ err: failure }, 'the host could not make the video; this worker tries');
    return undefined;
  }
  if (failure) throw failure;
  return fetchVideo(context, { object, directory: report.directory, size: report.size });
}

/**
 * The run's directory is said first and the video's size last: all that is needed to fetch it. Of complaints, of which
 * there may be one for each frame, the end is kept: a host holds back a run whose output nobody acknowledges. sh has no
 * pipefail, so the exit status comes on a descriptor of its own.
 */
function tellWhere(script: string): string {
  return `echo "run=$WINDLASS_RUN"
exec 5>&1
code=$({ { (
${script}
) 2>&1 >&5 5>&- 6>&-; echo "$?" >&6; } | tail -c ${STDERR_KEPT} >&2 5>&- 6>&-; } 6>&1)
exec 5>&-
[ "$code" = 0 ] || exit "\${code:-1}"
echo "size=$(($(wc -c <"$WINDLASS_RUN/${HOST_VIDEO}")))"
`;
}

/** What the run says, from its first byte on over each connection anew. */
class RunReport {
  readonly #context: VideoContext;
  #progress = new ProgressReader();
  #stdout = '';
  #stderr = '';

  constructor(context: VideoContext) {
    this.#context = context;
  }

  begin(): void {
    this.#progress = new ProgressReader();
    this.#stdout = '';
    this.#stderr = '';
  }

  take(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    const text = bytes.toString('latin1');
    if (stream === 'stderr') {
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
      return;
    }
    this.#stdout += text;
    if (this.#progress.add(text)) {
      this.#context.progress(
        (this.#progress.frames / this.#context.payload.images.length) * 0.95,
        'Encoding on the host.',
      );
    }
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

/** Brings the finished file from the run's directory; a transfer that breaks off is begun again under the same key. */
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
        // The connection is good: another one would not help.
        if (isUnavailable(error)) return [error] as const;
        throw error;
      });
      if (stored instanceof WindlassError || stored === video.size) return stored;
      await worker.objects.remove(video.object);
      throw new WindlassError('remote_connection_failed', {
        detail: `Of the video's ${video.size} bytes ${stored} came.`,
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
