import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { escapeId } from './escape-path.ts';
import { resolvePath } from './host-paths.ts';
import { ANSWER_MS } from './http.ts';
import { cancelJob, errorOfJob, type Job, type WaitOptions, waitForEnd } from './jobs.ts';
import type { Bytes } from './lines.ts';
import type { Options } from './options.ts';
import type { ScriptSession } from './pieces/script-on-host.ts';
import { readBytes } from './read-bytes.ts';
import type { components } from './schema.ts';

type NewVideo = Options<components['schemas']['NewVideo']>;
type VideoType = 'video/mp4' | 'video/webm';

export interface VideoOptions extends Omit<NewVideo, 'content-type' | 'images'> {
  /**
   * Paths of the frames on the host, in order. A relative one, or `~/…`, is in the home; so is `pattern`. One text is that
   * where it holds `*` or a number such as `%05d`, else the only frame.
   */
  images?: string | string[] | undefined;
  /** `video/mp4` unless given. */
  contentType?: VideoType | undefined;
  /** 1 to 255 visible characters of your own: for 24 hours the same request under the same key is the same video. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Asks for a video of frames on the host of a session. */
export async function startVideo(
  connection: Connection,
  session: ScriptSession,
  { contentType = 'video/mp4', idempotencyKey, signal, ...options }: VideoOptions,
): Promise<Video> {
  const { sid } = session;
  const resolve = (path: string) => resolvePath(session, path, signal);
  const { images, pattern } = chooseFrames(options);
  const paths: string[] = [];
  // One after the other: the first one asks the host.
  for (const path of images ?? []) paths.push(await resolve(path));
  const body: NewVideo = {
    'content-type': contentType,
    ...options,
    images: images && paths,
    pattern: pattern && (await resolve(pattern)),
  };
  const { job } = await unwrap(
    connection.api.POST('/api/remotes/{sid}/videos', {
      params: { path: { sid }, header: { 'Idempotency-Key': idempotencyKey } },
      body,
      signal,
      timeoutMs: ANSWER_MS,
    }),
  );
  return new Video(connection, job, contentType);
}

/** The list of frames, or the pattern: one path is no list of its letters. Of both, the service says that one is too many. */
function chooseFrames({ images, pattern }: Pick<VideoOptions, 'images' | 'pattern'>) {
  if (typeof images !== 'string') return { images, pattern };
  // The number is in the name of the file: its folder may be called `50%damping`.
  const isPattern = pattern === undefined && /\*|%0?\d{0,2}d[^/]*$/.test(images);
  return isPattern ? { images: undefined, pattern: images } : { images: [images], pattern };
}

/** A video that is being made, or was. */
export class Video {
  /** The id of its job, which is also that of the video: `vsid`. */
  readonly job: string;
  /**
   * Where a `<video>` of a page whose user is logged in gets it from, once it is ready and until 24 hours later, also
   * after the end of its session.
   */
  readonly url: string;
  /** What was asked for; undefined where its job alone is known, whose result has it as `type`. */
  readonly contentType: VideoType | undefined;
  readonly #connection: Connection;
  readonly #path: string;

  constructor(connection: Connection, job: string, contentType?: VideoType) {
    this.#connection = connection;
    this.#path = `/api/jobs/${escapeId(job)}/result`;
    this.job = job;
    this.url = `${connection.http.base}${this.#path}`;
    this.contentType = contentType;
  }

  /** Its job when it is ready; `onChange` is told of its progress. Throws WindlassError where it cannot be made. */
  async wait(options?: WaitOptions): Promise<Job> {
    const job = await waitForEnd(this.#connection, this.job, options);
    if (job.state !== 'succeeded') throw errorOfJob(job);
    return job;
  }

  /** Its bytes as they come, once it is ready. */
  chunks(options?: { signal?: AbortSignal | undefined }): AsyncGenerator<Bytes> {
    const path = this.#path;
    const ask = (at: number) => ({ path, headers: at > 0 ? { Range: `bytes=${at}-` } : undefined });
    return readBytes(this.#connection.http, ask, options);
  }

  /** All of it, when it is ready. */
  async blob(options?: { signal?: AbortSignal | undefined }): Promise<Blob> {
    const { result } = await this.wait(options);
    const pieces: Bytes[] = [];
    for await (const bytes of this.chunks(options)) pieces.push(bytes);
    return new Blob(pieces, { type: result?.type });
  }

  /** Asks for its end; false where it had ended before. */
  cancel(options?: { signal?: AbortSignal | undefined }): Promise<boolean> {
    return cancelJob(this.#connection, this.job, options);
  }
}
