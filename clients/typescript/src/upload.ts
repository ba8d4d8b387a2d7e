import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { ANSWER_MS, isPassing } from './http.ts';
import { errorOfJob, type Job, waitForEnd } from './jobs.ts';
import type { components } from './schema.ts';
import { Turns } from './turns.ts';

type Schemas = components['schemas'];

/** Bytes that are read in pieces: a File or Blob, or what openFile() of `@windlass/client/node` gives. */
export interface Source {
  readonly name?: string;
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

interface SendOptions {
  /** Bytes of a part; 8 MiB, or more where a file is so large that there would be too many. */
  partSize?: number;
  /** So many parts are sent at once: 4. */
  parallel?: number;
  /** Told how many bytes the service has. */
  onProgress?: (progress: { sent: number; total: number }) => void;
  /** Ends it, with the signal's reason as error; it can be resumed. */
  signal?: AbortSignal;
}

/** Where files go, and how they are parsed: parameters of the parser stand beside it. */
export interface NewUpload extends SendOptions {
  mid: string;
  parser: string;
  /** Inputs of the model, unless it is false. */
  input?: boolean;
  /** The artifacts, one for each file: the names of the files, unless given. */
  aids?: string[];
  /** Told the id of the upload, by which another page or program can resume it. */
  onBegin?: (upload: string) => void;
  [parameter: string]: unknown;
}

/** An upload that was begun before, and is continued with the same files and parts. */
export interface ResumedUpload extends SendOptions {
  resume: string;
}

export type UploadOptions = NewUpload | ResumedUpload;

const PART_SIZE = 8 << 20;
/** The service takes 100,000 parts. */
const MOST_PARTS = 50_000;
/** What a link is taken to bring at least, in bytes a ms. */
const SLOWEST = 16;

interface Part {
  fid: number;
  pid: number;
  bytes: { arrayBuffer(): Promise<ArrayBuffer> };
  size: number;
}

/**
 * Sends files in parts, several at once, and each again whose connection is lost. Parts that the service has already, by
 * their size and digest, are not sent. The job that parsed them, once it has succeeded; throws WindlassError where it failed.
 */
export async function upload(
  connection: Connection,
  files: Source[],
  options: UploadOptions,
): Promise<Job> {
  const { signal } = options;
  const { id, stored, job } = await begin(connection, files, options);
  const end = job ?? (await sendAll(connection, { id, stored, files, options }));
  const ended = await waitForEnd(connection, end, { signal });
  if (ended.state !== 'succeeded') throw errorOfJob(ended);
  return ended;
}

interface Begun {
  id: string;
  stored: Schemas['UploadPart'][];
  /** Where all was sent before. */
  job?: string;
}

async function begin({ api }: Connection, files: Source[], options: UploadOptions): Promise<Begun> {
  const { signal } = options;
  if ('resume' in options) {
    const params = { path: { uid: (options as ResumedUpload).resume } };
    const { id, parts, job } = await unwrap(
      api.GET('/api/uploads/{uid}', { params, signal, timeoutMs: ANSWER_MS }),
    );
    return { id, stored: parts, job };
  }
  const { partSize, parallel, onProgress, onBegin, signal: _, ...given } = options as NewUpload;
  const aids = files.map(({ name }, fid) => name ?? `file ${fid}`);
  const body = { input: true, aids, ...given };
  const { id } = await unwrap(api.POST('/api/uploads', { body, signal, timeoutMs: ANSWER_MS }));
  onBegin?.(id);
  return { id, stored: [] };
}

/** Sends what is not stored; the job that parses all of it. */
async function sendAll(
  connection: Connection,
  { id, stored, files, options }: Begun & { files: Source[]; options: UploadOptions },
): Promise<string> {
  const { parallel = 4, onProgress, signal } = options;
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const partSize = options.partSize ?? Math.max(PART_SIZE, Math.ceil(total / MOST_PARTS));
  const split = files.map((file, fid) => splitFile(file, fid, partSize));
  const known = new Map(stored.map(part => [`${part.fid}/${part.pid}`, part]));
  const parts = split.flat().values();
  const turns = new Turns();
  // The first part that cannot be sent ends the others.
  const failed = new AbortController();
  const either = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  let sent = 0;
  onProgress?.({ sent, total });
  const sendParts = async () => {
    for (const part of parts) {
      const stored = known.get(`${part.fid}/${part.pid}`);
      await sendPart(connection, { id, part, known: stored, turns }, either);
      sent += part.size;
      onProgress?.({ sent, total });
    }
  };
  try {
    await Promise.all(Array.from({ length: parallel }, sendParts));
  } catch (error) {
    failed.abort(error);
    throw error;
  }
  const params = { path: { uid: id } };
  const body = { uploaded: split.map(({ length }) => length) };
  const { api } = connection;
  return (
    await unwrap(
      api.POST('/api/uploads/{uid}/finished', { params, body, signal, timeoutMs: ANSWER_MS }),
    )
  ).job;
}

/** At least one part, of an empty file too. */
function splitFile(file: Source, fid: number, partSize: number): Part[] {
  const count = Math.max(1, Math.ceil(file.size / partSize));
  return Array.from({ length: count }, (_, pid) => {
    const start = pid * partSize;
    const end = Math.min(file.size, start + partSize);
    return { fid, pid, bytes: file.slice(start, end), size: end - start };
  });
}

async function sendPart(
  { http }: Connection,
  {
    id,
    part,
    known,
    turns,
  }: { id: string; part: Part; known: Schemas['UploadPart'] | undefined; turns: Turns },
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { fid, pid, size } = part;
  const body = await part.bytes.arrayBuffer();
  const digest = await digestOf(body);
  if (known?.size === size && (digest === undefined || known.digest === digest)) return;
  const headers: Record<string, string> = { 'Content-Type': 'application/octet-stream' };
  if (digest !== undefined) headers['Content-Digest'] = `sha-256=:${digest}:`;
  const path = `/api/uploads/${id}/files/${fid}/parts/${pid}`;
  // What is lost is sent again below.
  const sending = { signal, patience: Infinity, timeoutMs: ANSWER_MS + size / SLOWEST };
  for (let attempt = 0; ; attempt++) {
    try {
      const put = () => http.request(path, { method: 'PUT', headers, body }, sending);
      await (await turns.take(put)).body?.cancel();
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      await http.pause(attempt, { error, signal });
    }
  }
}

/** SHA-256 in base64; undefined in a page that was not loaded by https, where a browser computes none. */
async function digestOf(bytes: ArrayBuffer): Promise<string | undefined> {
  if (!crypto.subtle) return undefined;
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))));
}
