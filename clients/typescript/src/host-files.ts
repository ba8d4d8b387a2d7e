import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { escapePath } from './escape-path.ts';
import { requireJson } from './foreign-answer.ts';
import { readBytes } from './read-bytes.ts';
import type { components } from './schema.ts';
import type { Source } from './upload.ts';

export type DirectoryListing = components['schemas']['DirectoryListing'];
export type WrittenFile = components['schemas']['WrittenFile'];

export interface WriteOptions {
  /** Permissions, such as 0o644; else those of the file that is replaced. */
  mode?: number;
  /** Makes the folders that are missing. */
  parents?: boolean;
  /** Throws `precondition_failed` where there is such a file. */
  exclusive?: boolean;
  /** How often it is sent again where the connection is lost: 10 times. */
  attempts?: number;
  /** Told how many bytes were sent; from the beginning again where the connection was lost. */
  onProgress?: (progress: { sent: number; total: number }) => void;
  signal?: AbortSignal;
}

/** Bytes that are sent at once. */
const PIECE = 1 << 20;
/** A large file is written to its host before the answer comes. */
const ANSWER_MS = 3_600_000;

const pathOf = (sid: string, path: string) =>
  `/api/remotes/${encodeURIComponent(sid)}/file${escapePath(path)}`;

/** The entries of a directory on the host. */
export function listDirectory(
  { api }: Connection,
  { sid, path }: { sid: string; path: string },
  { signal }: { signal?: AbortSignal } = {},
): Promise<DirectoryListing> {
  return unwrap(
    api.POST('/api/remotes/{sid}/browse/{path}', {
      params: { path: { sid, path } },
      pathSerializer: address =>
        address.replace('{sid}', encodeURIComponent(sid)).replace('/{path}', escapePath(path)),
      signal,
      // It is cancelled where its client is lost, and changes nothing.
      isRepeatable: true,
    }),
  );
}

export interface ReadOptions {
  /** The first byte, from 0. */
  start?: number;
  /** So many bytes at most; else all of them. */
  length?: number;
  /** Throws `changed` where the file has another state than the one that onBegin told, to go on with what was read then. */
  tag?: string;
  /** Told the state of the file, where its host tells one, and how many bytes are to come. */
  onBegin?: (begun: { tag: string | undefined; length: number }) => void;
  signal?: AbortSignal;
}

/** Bytes of a file on the host, as they come; where the connection is lost, the rest is asked for. */
export function readFile(
  { http }: Connection,
  { sid, path }: { sid: string; path: string },
  { start = 0, length, ...options }: ReadOptions = {},
): AsyncGenerator<Uint8Array> {
  const last = length === undefined ? '' : start + length - 1;
  const ask = (at: number) => ({
    path: pathOf(sid, path),
    headers: start + at > 0 || last !== '' ? { Range: `bytes=${start + at}-${last}` } : undefined,
  });
  return readBytes(http, ask, options);
}

/** Writes a file on the host: it is there whole, or as before. The same bytes twice do no harm, so they are sent again. */
export async function writeFile(
  { http }: Connection,
  { sid, path, bytes }: { sid: string; path: string; bytes: Source | Uint8Array | string },
  { mode, parents, exclusive, attempts = 10, onProgress, signal }: WriteOptions = {},
): Promise<WrittenFile> {
  const source = typeof bytes === 'string' || bytes instanceof Uint8Array ? blobOf(bytes) : bytes;
  const query = new URLSearchParams();
  if (mode !== undefined) query.set('mode', mode.toString(8).padStart(4, '0'));
  if (parents) query.set('parents', 'true');
  const headers: Record<string, string> = { 'Content-Type': 'application/octet-stream' };
  if (exclusive) headers['If-None-Match'] = '*';
  for (let attempt = 0; ; attempt++) {
    const body = source instanceof Blob ? source : streamOf(source, onProgress);
    try {
      const response = await http.request(
        `${pathOf(sid, path)}${query.size > 0 ? `?${query}` : ''}`,
        // Without `duplex` no stream is sent (Fetch, 5.5); in a page a File is sent as it is.
        { method: 'PUT', headers, body, duplex: 'half' } as RequestInit,
        { signal, isRepeatable: false, timeoutMs: ANSWER_MS },
      );
      onProgress?.({ sent: source.size, total: source.size });
      return (await (await requireJson(response)).json()) as WrittenFile;
    } catch (error) {
      const isLost = error instanceof WindlassError && (error.status === 0 || error.status >= 502);
      // A file that is there now may be the one that was sent.
      if (!isLost || exclusive || attempt >= attempts) throw error;
      await http.pause(attempt, { error, signal });
    }
  }
}

const blobOf = (bytes: Uint8Array | string) =>
  new Blob([bytes as Uint8Array<ArrayBuffer> | string]);

function streamOf(source: Source, onProgress: WriteOptions['onProgress']): ReadableStream {
  const { size: total } = source;
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      if (sent >= total) return controller.close();
      const end = Math.min(total, sent + PIECE);
      controller.enqueue(new Uint8Array(await source.slice(sent, end).arrayBuffer()));
      sent = end;
      onProgress?.({ sent, total });
    },
  });
}
