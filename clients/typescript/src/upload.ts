import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { ANSWER_MS } from './http.ts';
import { errorOfJob, type Job, waitForEnd } from './jobs.ts';
import type { ParserParameters } from './parser-parameters.ts';
import { requireWhole } from './require-whole.ts';
import type { components } from './schema.ts';
import { PartSender, type SendOptions, type Source } from './send-parts.ts';
import { checkFiles } from './sent-files.ts';
import { UploadPlan } from './upload-plan.ts';

type Schemas = components['schemas'];

export type { Source };

interface UploadEvents extends SendOptions {
  /** Told the job of a resumed upload whose bytes had all been sent before: nothing is sent now. */
  onSentBefore?: ((job: string) => void) | undefined;
  /** Told the job that parses the files, once the service has all of them: nobody has to send anything any more. */
  onSent?: ((job: string) => void) | undefined;
}

/** Where files go, and how they are parsed: parameters of the parser stand beside it. */
export interface NewUpload extends UploadEvents, ParserParameters {
  mid: string;
  parser: string;
  /** Whether they are inputs of the model. */
  input?: boolean | undefined;
  /** The artifacts, one for each file: the names of the files, unless given. */
  aids?: string[] | undefined;
  /** Told the id of the upload, by which another page or program can resume it. */
  onBegin?: ((upload: string) => void) | undefined;
  /** Continues this upload instead, which was begun with all of that. */
  resume?: string | null | undefined;
}

/** An upload that was begun before, and is continued with the same files and parts. */
export interface ResumedUpload extends UploadEvents {
  resume: string;
}

export type UploadOptions = NewUpload | ResumedUpload;

/** A file, or several: in an array, or a `FileList` of a page. */
export type Files = Source | ArrayLike<Source>;

/**
 * Sends files in parts, several at once, and repeats those whose connection is lost. Parts that the service has, by
 * size and digest, are not sent. Returns the parse job once it has succeeded; throws its WindlassError where it failed.
 */
export async function upload(
  connection: Connection,
  given: Files,
  options: UploadOptions,
): Promise<Job> {
  const { signal, partSize, parallel } = options;
  const files = toSources(given);
  requireWhole({ partSize, parallel }, 1);
  const { id, stored, job } = await begin(connection, files, options);
  const end = job ?? (await sendAll(connection, { id, stored, files, options }));
  options.onSent?.(end);
  const ended = await waitForEnd(connection, end, { signal });
  if (ended.state !== 'succeeded') throw errorOfJob(ended);
  return ended;
}

/** A program without types may give anything, such as a path. */
function toSources(given: Files): Source[] {
  const files = isSource(given) ? [given] : Array.from(given ?? []);
  if (files.length > 0 && files.every(isSource)) return files;
  throw new WindlassError({
    code: 'invalid_input',
    detail: 'There is no file to upload.',
    hint: 'Give a File or Blob, or openFile(path).',
  });
}

function isSource(one: unknown): one is Source {
  const { slice, size } = (one ?? {}) as Partial<Source>;
  return typeof slice === 'function' && typeof size === 'number';
}

interface Begun {
  id: string;
  stored: Schemas['UploadPart'][];
  /** Where all was sent before. */
  job?: string;
}

async function begin(
  connection: Connection,
  files: Source[],
  options: UploadOptions,
): Promise<Begun> {
  const { api } = connection;
  const { signal } = options;
  if (isResumed(options)) {
    const { resume, onSentBefore } = options;
    const params = { path: { uid: resume } };
    const found = await unwrap(
      api.GET('/api/uploads/{uid}', { params, signal, timeoutMs: ANSWER_MS }),
    );
    const { id, parts, job } = found;
    await checkFiles(connection, files, found, signal);
    if (job !== undefined) onSentBefore?.(job);
    return { id, stored: parts, job };
  }
  const { partSize, parallel, onProgress, onBegin, onSent, onSentBefore, resume, ...others } =
    options;
  const { signal: _, input = false, aids = files.map(nameOf), ...given } = others;
  const body = { input, aids, ...given };
  const { id } = await unwrap(api.POST('/api/uploads', { body, signal, timeoutMs: ANSWER_MS }));
  onBegin?.(id);
  return { id, stored: [] };
}

const nameOf = ({ name }: Source, fid: number): string => name ?? `file ${fid}`;

const isResumed = (options: UploadOptions): options is UploadOptions & ResumedUpload =>
  options.resume !== undefined && options.resume !== null;

/** Sends what is not stored; the job that parses all of it. */
async function sendAll(
  connection: Connection,
  { id, stored, files, options }: Begun & { files: Source[]; options: UploadOptions },
): Promise<string> {
  const { partSize, signal } = options;
  const sizes = files.map(({ size }) => size);
  const plan = new UploadPlan(sizes, { partSize, stored });
  const sender = new PartSender(connection, { id, files, plan, options });
  await sender.send(stored);
  for (;;) {
    const params = { path: { uid: id }, header: { 'If-Match': sender.tag } };
    const body = { uploaded: plan.counts };
    const { api } = connection;
    // Nothing is made of two states.
    for (const file of files) await file.check?.();
    try {
      return (
        await unwrap(
          api.POST('/api/uploads/{uid}/finished', { params, body, signal, timeoutMs: ANSWER_MS }),
        )
      ).job;
    } catch (error) {
      // A request that was given up was stored just now.
      if (!(error instanceof WindlassError && error.status === 412)) throw error;
      await sender.sendAgain();
    }
  }
}
