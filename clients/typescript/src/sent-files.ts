import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { ANSWER_MS } from './http.ts';
import type { Job } from './jobs.ts';
import type { components } from './schema.ts';
import { digestOf, type Source } from './send-parts.ts';

type Upload = components['schemas']['Upload'];
/** What is known of a file that was sent: its parts too, where they have digests. */
type SentFile = components['schemas']['SentFile'];

/** Throws `other_files` where these are not the files that the upload was begun with, as far as that can be told. */
export async function checkFiles(
  connection: Connection,
  files: Source[],
  upload: Upload,
  signal?: AbortSignal,
): Promise<void> {
  const { id, aids, job } = upload;
  const differ = (what: string) =>
    new WindlassError({
      code: 'other_files',
      detail: `Upload ${id} was begun with other files: ${what}.`,
      hint: 'Resume it with the same files in the same order, or begin another one.',
    });
  if (aids.length !== files.length) throw differ(`${aids.length}, not ${files.length}`);
  if (job === undefined) {
    for (const [fid, file] of files.entries())
      await checkStored(file, { fid, stored: upload.parts, differ, signal });
    return;
  }
  for (const [fid, sent] of (await listSent(connection, { ...upload, job }, signal)).entries()) {
    const file = files[fid] as Source;
    const { name = `file ${fid}`, size } = file;
    if (sent.size !== size)
      throw differ(`of ${name} ${sent.size} bytes were sent, and it has ${size}`);
    const digest = sent.parts && (await digestOfParts(file, sent.parts.sizes, signal));
    if (digest !== undefined && digest !== sent.parts?.digest)
      throw differ(`${name} has as many bytes, and not the same ones`);
  }
}

/**
 * Compares the stored parts of an open upload that follow one another from the first: their place in the file is certain. Where
 * parts were made smaller, an earlier and larger one may have been stored late: what follows it stands elsewhere.
 */
async function checkStored(
  file: Source,
  {
    fid,
    stored,
    differ,
    signal,
  }: {
    fid: number;
    stored: Upload['parts'];
    differ: (what: string) => WindlassError;
    signal?: AbortSignal | undefined;
  },
): Promise<void> {
  const parts = new Map(stored.filter(part => part.fid === fid).map(part => [part.pid, part]));
  const { name = `file ${fid}`, size } = file;
  let start = 0;
  let last = 0;
  for (let pid = 0, part = parts.get(0); part; part = parts.get(++pid)) {
    // A part that is smaller is the end of the file, or the first of smaller ones.
    if (part.size < last && parts.has(pid + 1)) return;
    signal?.throwIfAborted();
    const end = start + part.size;
    if (end > size) throw differ(`of ${name} ${end} bytes or more were sent, and it has ${size}`);
    if ((await digestOf(await file.slice(start, end).arrayBuffer())) !== part.digest)
      throw differ(`bytes ${start} to ${end} of ${name} are not those that were sent`);
    start = end;
    last = part.size;
  }
}

/**
 * What was sent of each file. The service lists the parts until they are parsed; then the result of the parse tells what they
 * were.
 */
async function listSent(
  { api }: Connection,
  { job, aids, parts }: Upload & { job: string },
  signal?: AbortSignal,
): Promise<SentFile[]> {
  if (parts.length > 0)
    return Promise.all(aids.map((_, fid) => describeParts(parts.filter(part => part.fid === fid))));
  try {
    const params = { path: { id: job } };
    const sending = { params, signal, timeoutMs: ANSWER_MS };
    const { result } = (await unwrap(api.GET('/api/jobs/{id}', sending))) as Job;
    return result?.files ?? [];
  } catch (error) {
    // The job's record was removed.
    if (error instanceof WindlassError && error.code === 'not_found') return [];
    throw error;
  }
}

async function describeParts(parts: Upload['parts']): Promise<SentFile> {
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const digest = await digestOf(joinDigests(parts.map(part => part.digest)));
  const sizes = parts.map(part => [part.size, 1]);
  return { size, parts: digest === undefined ? undefined : { sizes, digest } };
}

/** Undefined where no digest can be computed. */
async function digestOfParts(
  file: Source,
  sizes: number[][],
  signal?: AbortSignal,
): Promise<string | undefined> {
  const digests: string[] = [];
  let start = 0;
  for (const [size = 0, count = 0] of sizes)
    for (let n = 0; n < count; n++) {
      signal?.throwIfAborted();
      const digest = await digestOf(await file.slice(start, start + size).arrayBuffer());
      if (digest === undefined) return undefined;
      digests.push(digest);
      start += size;
    }
  return digestOf(joinDigests(digests));
}

const joinDigests = (digests: string[]): ArrayBuffer =>
  Uint8Array.from(digests.map(digest => atob(digest)).join(''), byte => byte.charCodeAt(0)).buffer;
