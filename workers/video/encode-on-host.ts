import { WindlassError } from '../../shared/errors/errors.ts';
import { abortable } from '../../shared/process/abort.ts';
import type { JobContext } from '../context.ts';
import type { AgentClient } from '../host-agent/client.ts';
import { isRunUnreachable } from '../runs/run-errors.ts';
import { runOnHost } from '../runs/run-on-host.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { fetchVideo } from './fetch-video.ts';
import { chooseEncoder, planVideoSize } from './ffmpeg-arguments.ts';
import type { Pictures, Size } from './frame-info.ts';
import { planLabels } from './frame-labels.ts';
import type { Frame, FrameValidator } from './frame-validator.ts';
import { HOST_STILLS, HOST_VIDEO, type HostKind, hostEncodeScript } from './host-encode-script.ts';
import { HostOutput, MAX_STDERR_BYTES } from './host-output.ts';
import { inspectFrames, type NeedsWorker } from './inspect-frames.ts';
import { limitInspection } from './limit-inspection.ts';
import type { StoredVideo } from './store-video.ts';
import { tooSlow, videoLimits } from './video-limits.ts';

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
 * Where frames differ in a way that ffmpeg does not take, a worker must encode it.
 */
export async function encodeOnHost(
  context: VideoContext,
  video: HostVideo,
): Promise<StoredVideo | NeedsWorker> {
  const { object, frames } = video;
  // Before anything begins that would have to be ended: it throws for what cannot be encoded.
  const { script, size, seconds } = planHostEncode(context, video);
  const output = new HostOutput(frames.length, (fraction, message) =>
    context.progress(fraction * 0.95, message),
  );
  const unusable = new AbortController();
  const overdue = setTimeout(() => unusable.abort(tooSlow(seconds)), seconds * 1_000);
  const [validated, ran] = await Promise.allSettled([
    validateMeanwhile(context, frames, unusable),
    runOnHost(
      context,
      { script },
      {
        stored: () => ({ stdout: 0, stderr: 0 }),
        take: async (stream, bytes) => output.take(stream, bytes),
        acknowledge: () => output.begin(),
        limit: unusable.signal,
      },
    ),
  ]);
  clearTimeout(overdue);
  const validator = await judge(context, frames, { validated, ran, unusable: unusable.signal });
  validator.assertUsable();
  const { needsWorker } = validator;
  if (needsWorker !== undefined) return { needsWorker };
  if (ran.status === 'rejected') throw ran.reason;
  const failure = output.failureOf(ran.value);
  if (failure) throw failure;
  const { varies } = validator;
  return fetchVideo(context, { object, output, frames: frames.length, size, varies });
}

function planHostEncode(
  { payload, worker }: VideoContext,
  { frames, pictures, ffmpeg, encoders }: HostVideo,
): { script: string; size: Size; seconds: number } {
  const size = planVideoSize(pictures, payload.width);
  const encoder = chooseEncoder(encoders, { ...payload, size });
  const labels = payload.label && planLabels(payload.label, frames, size);
  const limits = videoLimits(worker.config);
  const images = frames.map(({ path }) => path);
  const made = { pictures, ffmpeg, encoder, images, limits, labels };
  const script = reportFile(hostEncodeScript({ ...payload, ...made }));
  return { script, size, seconds: limits.seconds };
}

/** Aborts `unusable` where no video can be made of the frames; a host that is unreachable says nothing of them. */
async function validateMeanwhile(
  context: VideoContext,
  frames: readonly Frame[],
  unusable: AbortController,
): Promise<FrameValidator> {
  const signal = AbortSignal.any([context.signal, unusable.signal]);
  try {
    const validator = await inspectFrames({ ...context, signal }, frames);
    const problem = findProblem(validator);
    if (problem) unusable.abort(problem);
    return validator;
  } catch (error) {
    if (!isRunUnreachable(context, error)) unusable.abort(error);
    throw error;
  }
}

interface EncoderEnd {
  validated: PromiseSettledResult<FrameValidator>;
  ran: PromiseSettledResult<unknown>;
  unusable: AbortSignal;
}

/** What is known of all frames. Throws where that can no more be known, or makes no difference. */
async function judge(
  context: VideoContext,
  frames: readonly Frame[],
  { validated, ran, unusable }: EncoderEnd,
): Promise<FrameValidator> {
  if (validated.status === 'fulfilled') return validated.value;
  // If both failed, the error of the run also tells what becomes of it.
  if (ran.status === 'rejected') throw ran.reason;
  unusable.throwIfAborted();
  // Reads what was missed while the host was unreachable.
  return limitInspection(context, limited => inspectFrames(limited, frames));
}

function findProblem(validator: FrameValidator): WindlassError | undefined {
  if (!validator.ok) return validator.toError();
  if (validator.needsWorker === undefined) return undefined;
  return new WindlassError('bad_frames', { detail: `${validator.needsWorker}.` });
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
