import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { ANSWER_MS } from './http.ts';
import type { Job } from './jobs.ts';
import type { components } from './schema.ts';
import { digestOf, type Source } from './send-parts.ts';

type Upload = components['schemas']['Upload'];

/** What is known of a file that was sent. */
interface SentFile {
  size: number;
  /** So many parts of so many bytes, one after the other, and the SHA-256 of their SHA-256s. */
  parts?: { sizes: [number, number][]; digest: string };
}

/** Throws `other_files` where these are not those that the upload was begun with, as far as that can be told. */
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
  // What is open is compared part by part when it is sent.
  if (job === undefined) return;
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

/** The service lists the parts until they are parsed, and the end of that tells what they were. */
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
    return (result as { files?: SentFile[] } | null)?.files ?? [];
  } catch (error) {
    // Its record was removed.
    if (error instanceof WindlassError && error.code === 'not_found') return [];
    throw error;
  }
}

async function describeParts(parts: Upload['parts']): Promise<SentFile> {
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const digest = await digestOf(joinDigests(parts.map(part => part.digest)));
  const sizes = parts.map(part => [part.size, 1] as [number, number]);
  return { size, parts: digest === undefined ? undefined : { sizes, digest } };
}

/** Undefined where no digest can be computed. */
async function digestOfParts(
  file: Source,
  sizes: [number, number][],
  signal?: AbortSignal,
): Promise<string | undefined> {
  const digests: string[] = [];
  let start = 0;
  for (const [size, count] of sizes)
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
