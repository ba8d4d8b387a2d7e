import { createReadStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WindlassError } from '../../shared/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { Payload } from '../../shared/jobs/catalog.ts';
import { STREAMS } from '../../shared/jobs/output.ts';
import type { Handler, JobContext } from '../context.ts';
import { carryRun } from '../remote/carry-run.ts';
import { forgetRun } from '../remote/forget-run.ts';
import type { RemoteSession } from '../remote/remote-session.ts';
import { canHostEncode, hostEncodeScript, parseProgress } from '../video/encode-host.ts';
import { encodeVideo } from '../video/encode-worker.ts';
import { FrameCheck, type FrameKind } from '../video/frames.ts';
import { frameScript, readFrames } from '../video/transfer.ts';

type VideoContext = JobContext<'video'>;
type Made = { bytes: number; object: string; encoded: 'host' | 'worker' };

/** What the host's ffmpeg says on standard error is kept up to here, for the failure's record. */
const STDERR_KEPT = 8 << 10;

/**
 * Makes a video where that is cheaper: on the host when its ffmpeg can, else here from frames that come over one
 * channel. It becomes visible with the job's end, whole or not at all.
 */
const video: Handler<'video'> = async context => {
  const { payload, job } = context;
  const object = `videos/${job.id}/${newId()}`;
  const kind = await learnKind(context);
  const ffmpeg = kind && payload.encode !== 'worker' ? await findHostEncoder(context, payload) : undefined;
  if (payload.encode === 'host' && !ffmpeg) {
    throw new WindlassError('video_failed', {
      detail: `Video creation failed: the host cannot make ${payload.type}.`,
      hint: 'Leave "encode" out, or install an ffmpeg with the encoder on the host.',
    });
  }
  const made = kind && ffmpeg ? await encodeOnHost(context, { object, kind, ffmpeg }) : await encodeHere(context, object);
  return {
    result: { object: made.object, type: payload.type, bytes: made.bytes, frames: payload.images.length, encoded: made.encoded },
    after: () => forgetRun(context),
  };
};

export default video;

const use = <T>({ worker, job, signal, cancel }: VideoContext, work: (session: RemoteSession) => Promise<T>): Promise<T> =>
  worker.sessions.use(job.session ?? '', AbortSignal.any([signal, cancel, worker.stopping]), work);
void use;
void createReadStream;
void mkdtemp;
void rm;
void stat;
void tmpdir;
void join;
void STREAMS;
void encodeVideo;
void FrameCheck;
void frameScript;
void readFrames;
void hostEncodeScript;
void parseProgress;
void canHostEncode;
void carryRun;
void STDERR_KEPT;
