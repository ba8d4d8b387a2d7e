import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import type { JobContext } from '../context.ts';
import type { AgentClient } from '../host-agent/client.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { isAway } from '../runs/run-errors.ts';
import { runOnHost } from '../runs/run-on-host.ts';
import { withScratch, writeScratch } from '../sandbox/scratch-dir.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { chooseEncoder, DEFAULT_FPS, planVideoSize } from './ffmpeg-arguments.ts';
import type { Pictures, Size } from './frame-info.ts';
import { planLabels } from './frame-labels.ts';
import { dropErrors } from './frame-stream.ts';
import type { Frame, FrameValidator } from './frame-validator.ts';
import { HOST_STILLS, HOST_VIDEO, type HostKind, hostEncodeScript } from './host-encode-script.ts';
import { HostOutput, MAX_STDERR_BYTES } from './host-output.ts';
import { inspectFrames } from './inspect-frames.ts';
import { limitInspection } from './limit-inspection.ts';
import { planTiles } from './plan-stills.ts';
import { type StoredVideo, storeVideo } from './store-video.ts';
import { fileTooLarge, tooSlow, videoLimits } from './video-limits.ts';

type VideoContext = JobContext<'video'>;

/** The host's ffmpeg, if that has an encoder for this video. */
export async function findHostEncoder(context: VideoContext): Promise<HostEncoder | undefined> {
  const ask = async (session: RemoteSession) => askOnce(await session.agent());
  const found = await withSession(context, session => abortable(ask(session), context.signal));
  if (!found || !chooseEncoder(found.encoders, context.payload)) return undefined;
  return { ffmpeg: found.path, encoders: found.encoders };
}

/** An agent looks ffmpeg up anew each time, which takes as long as a small video; it lives as long as a connection. */
const answers = new WeakMap<AgentClient, ReturnType<AgentClient['ffmpeg']>>();

function askOnce(agent: AgentClient): ReturnType<AgentClient['ffmpeg']> {
  const asked = answers.get(agent) ?? agent.ffmpeg();
  answers.set(agent, asked);
  asked.catch(() => answers.delete(agent));
  return asked;
}

interface HostEncoder {
  ffmpeg: string;
  encoders: readonly string[];
}

interface HostVideo extends HostEncoder {
  object: string;
  frames: readonly Frame[];
  pictures: Pictures & { kind: HostKind };
}

/**
 * Encodes the video on the host exactly once, validates all frames meanwhile, and stores it under the key `object`.
 * Undefined if frames are of several kinds: then a worker must encode it.
 */
export async function encodeOnHost(
  context: VideoContext,
  { object, frames, pictures, ffmpeg, encoders }: HostVideo,
): Promise<StoredVideo | undefined> {
  const { payload } = context;
  const images = frames.map(({ path }) => path);
  const size = planVideoSize(pictures, payload.width);
  const encoder = chooseEncoder(encoders, { ...payload, size });
  const labels = payload.label && planLabels(payload.label, frames, size);
  const limits = videoLimits(context.worker.config);
  // Before anything begins that would have to be ended: it throws for what cannot be encoded.
  const made = { pictures, ffmpeg, encoder, images, limits, labels };
  const script = reportFile(hostEncodeScript({ ...payload, ...made }));
  const unusable = new AbortController();
  const signal = AbortSignal.any([context.signal, unusable.signal]);
  const validating = inspectFrames({ ...context, signal }, frames).then(validator => {
    const problem = findProblem(validator);
    if (problem) unusable.abort(problem);
    return validator;
  });
  validating.catch((error: unknown) => {
    if (!isAway(context, error)) unusable.abort(error);
  });
  const output = new HostOutput(images.length, (share, message) =>
    context.progress(share * 0.95, message),
  );
  const overdue = setTimeout(() => unusable.abort(tooSlow(limits.seconds)), limits.seconds * 1_000);
  const running = runOnHost(
    context,
    { script },
    {
      stored: () => ({ stdout: 0, stderr: 0 }),
      take: async (stream, bytes) => output.take(stream, bytes),
      acknowledge: () => output.begin(),
      limit: unusable.signal,
    },
  );
  const [validated, ran] = await Promise.allSettled([validating, running]);
  clearTimeout(overdue);
  // If both failed, the error of the run also tells what becomes of it.
  if (validated.status === 'rejected' && ran.status === 'rejected') throw ran.reason;
  if (validated.status === 'rejected') unusable.signal.throwIfAborted();
  // Reads what was missed while the host was away.
  const validator =
    validated.status === 'fulfilled'
      ? validated.value
      : await limitInspection(context, limited => inspectFrames(limited, frames));
  validator.assertUsable();
  if (validator.needsDecode) return undefined;
  if (ran.status === 'rejected') throw ran.reason;
  const failure = output.failureOf(ran.value);
  if (failure) throw failure;
  const { varies } = validator;
  return fetchVideo(context, { object, output, frames: frames.length, size, varies });
}

function findProblem(validator: FrameValidator): WindlassError | undefined {
  if (!validator.ok) return validator.toError();
  if (!validator.needsDecode) return undefined;
  return new WindlassError('bad_frames', { detail: 'The frames are of several kinds.' });
}

/**
 * Prints the run's directory first and the sizes of its files last. Keeps only the end of stderr, which may have a line
 * per frame: the agent blocks a run whose output is not acknowledged. The exit status takes a descriptor of its own,
 * because sh has no pipefail.
 */
function reportFile(script: string): string {
  return `echo "run=$WINDLASS_RUN"
exec 5>&1
code=$({ { (
${script}
) 2>&1 >&5 5>&- 6>&-; echo "$?" >&6; } | tail -c ${MAX_STDERR_BYTES} >&2 5>&- 6>&-; } 6>&1)
exec 5>&-
[ "$code" = 0 ] || exit "\${code:-1}"
size_of() { echo "$(($(wc -c <"$WINDLASS_RUN/$1")))"; }
[ ! -s "$WINDLASS_RUN/${HOST_STILLS.sprite}" ] ||
  echo "stills=$(size_of ${HOST_STILLS.poster}) $(size_of ${HOST_STILLS.sprite})"
echo "size=$(size_of ${HOST_VIDEO})"
`;
}

/** Copies the files from the run's directory, anew after a lost connection, and stores them. */
function fetchVideo(
  context: VideoContext,
  {
    object,
    output,
    frames,
    size,
    varies,
  }: { object: string; output: HostOutput; frames: number; size: Size; varies: boolean },
): Promise<StoredVideo> {
  const { payload } = context;
  context.progress(0.96, 'storing the video: fetching it from the host');
  const { tiles } = planTiles(size, { frames, fps: payload.fps ?? DEFAULT_FPS });
  // With differing pixel formats ffmpeg has lost pictures of the stills.
  const stills = varies ? undefined : output.stills;
  const names = [HOST_VIDEO, ...(stills ? [HOST_STILLS.poster, HOST_STILLS.sprite] : [])];
  const sizes = [output.size, ...(stills ?? [])];
  const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
  const { keepFree, fileBytes } = videoLimits(context.worker.config);
  // The script makes no files of this size, so its ffmpeg was replaced.
  if (sizes.some(bytes => bytes > fileBytes)) throw fileTooLarge(fileBytes);
  return withScratch('video', async directory => {
    const path = join(directory, 'video');
    const fetch = async (session: RemoteSession, signal: AbortSignal) => {
      await rm(path, { force: true });
      const paths = names.map(name => quoteWord(`${output.directory}/${name}`));
      const channel = await session.exec(`cat ${paths.join(' ')}`, signal);
      dropErrors(channel);
      channel.stdin.end();
      try {
        await writeScratch(path, channel.stdout, { signal, keepFree, size: total });
      } finally {
        channel.destroy();
      }
      const { size: arrived } = await stat(path);
      if (arrived === total) return;
      throw new WindlassError('remote_connection_failed', {
        detail: `Only ${arrived} of the video's ${total} bytes arrived.`,
      });
    };
    await limitInspection(context, limited =>
      withSession(limited, session => fetch(session, limited.signal)),
    );
    if (!stills) return storeVideo(context, { video: { path }, object, frames, size });
    const [poster, sprite] = stills;
    const partOf = (start: number, bytes: number) => ({ path, part: { start, bytes } });
    return storeVideo(context, {
      video: partOf(0, output.size),
      stills: {
        poster: partOf(output.size, poster),
        sprite: partOf(output.size + poster, sprite),
        tiles,
      },
      ...{ object, frames, size },
    });
  });
}
