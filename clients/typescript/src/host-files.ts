import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { escapeId, escapePath } from './escape-path.ts';
import { resolvePath } from './host-paths.ts';
import { isPassing } from './http.ts';
import type { Bytes } from './lines.ts';
import { Losses } from './losses.ts';
import type { ScriptSession } from './pieces/script-on-host.ts';
import { sendPieces, takesNoPieces } from './pieces/send-pieces.ts';
import { filePath, putFile, type WrittenFile } from './put-file.ts';
import { readBytes } from './read-bytes.ts';
import { requireWhole } from './require-whole.ts';
import type { components } from './schema.ts';
import type { Source } from './upload.ts';

export type DirectoryListing = components['schemas']['DirectoryListing'];
export type { WrittenFile };

export interface WriteOptions {
  /** Permissions, such as 0o644; else those of the file that is replaced. */
  mode?: number | undefined;
  /** Makes the folders that are missing. */
  parents?: boolean | undefined;
  /** Throws `precondition_failed` where there is such a file. */
  exclusive?: boolean | undefined;
  /** How often in a row it is sent again after a lost connection, and each piece of it: 10 by default. */
  attempts?: number | undefined;
  /**
   * Names of the file and of its state, in letters and digits. A file of more than 8 MiB is then sent in pieces: a
   * later call with both names, as after a killed program, continues with those on the host. Pieces of another state
   * are removed.
   */
  resume?: { what: string; state: string } | undefined;
  /** Told how many bytes were sent; from the beginning again where the connection was lost. */
  onProgress?: ((progress: { sent: number; total: number }) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Bytes that are read at once. */
const CHUNK = 1 << 20;
/** What is smaller is not sent in pieces: they would cost more than they save. */
const LEAST_BYTES = 256 << 10;
const PIECE_BYTES = 8 << 20;
/** Each piece is a job: a file that would have more begins with larger pieces. */
const FIRST_PIECES = 1_000;

interface PathOnHost {
  session: ScriptSession;
  path: string;
}

/** The entries of a directory on the host. */
export async function listDirectory(
  { api }: Connection,
  given: PathOnHost,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<DirectoryListing> {
  const { sid } = given.session;
  const path = await resolvePath(given.session, given.path, signal);
  return unwrap(
    api.POST('/api/remotes/{sid}/browse/{path}', {
      params: { path: { sid, path } },
      pathSerializer: address =>
        address.replace('{sid}', escapeId(sid)).replace('/{path}', escapePath(path)),
      signal,
      // It is cancelled where its client is lost, and changes nothing.
      isRepeatable: true,
    }),
  );
}

/** Longer than the 240 s after which the service says that its host sends nothing; `fetch` of Node.js waits 300 s. */
const HOST_SILENCE_MS = 270_000;

export interface ReadOptions {
  /** The first byte, from 0. */
  start?: number | undefined;
  /** So many bytes at most; else all of them. */
  length?: number | undefined;
  /**
   * The state that onBegin was told, to continue what was read then. Throws `changed` where the file has another one.
   */
  tag?: string | undefined;
  /** Told the state of the file, where its host tells one, and how many bytes are to come. */
  onBegin?: ((begun: { tag: string | undefined; length: number }) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Bytes of a file on the host, as they come; where the connection is lost, the rest is asked for. */
export async function* readFile(
  { http }: Connection,
  given: PathOnHost,
  { start = 0, length, ...options }: ReadOptions = {},
): AsyncGenerator<Bytes> {
  requireWhole({ start, length });
  // There is no range of no bytes: the service would send all of them.
  if (length === 0) return;
  const { sid } = given.session;
  const path = await resolvePath(given.session, given.path, options.signal);
  const last = length === undefined ? '' : start + length - 1;
  const ask = (at: number) => ({
    path: filePath(sid, path),
    headers: start + at > 0 || last !== '' ? { Range: `bytes=${start + at}-${last}` } : undefined,
  });
  yield* readBytes(http, ask, { answerMs: HOST_SILENCE_MS, ...options });
}

/**
 * Writes a file on the host, whole or not at all. The same bytes twice do no harm, so they are sent again after a loss;
 * in pieces over a link that breaks before all are through.
 */
export async function writeFile(
  connection: Connection,
  { session, path: given, bytes }: PathOnHost & { bytes: Source | Uint8Array | string },
  options: WriteOptions = {},
): Promise<WrittenFile> {
  const { http } = connection;
  const { mode, parents, exclusive, attempts = 10, resume, onProgress, signal } = options;
  const source = typeof bytes === 'string' || bytes instanceof Uint8Array ? blobOf(bytes) : bytes;
  const { sid } = session;
  const path = await resolvePath(session, given, signal);
  const { size } = source;
  const large = Math.max(PIECE_BYTES, Math.ceil(size / FIRST_PIECES));
  let isForPieces = size > LEAST_BYTES;
  /** Undefined where the host takes none. */
  const sendInPieces = async (length: number) => {
    try {
      return await sendPieces(
        connection,
        { session, path, source, length },
        { ...options, attempts },
      );
    } catch (error) {
      if (!takesNoPieces(error)) throw error;
      isForPieces = false;
    }
  };
  if (resume && !exclusive && size > PIECE_BYTES) {
    const written = await sendInPieces(large);
    if (written) return written;
  }
  const losses = new Losses(http);
  for (let attempt = 0; ; attempt++) {
    let changed: unknown;
    const onChanged = (error: unknown) => {
      changed = error;
    };
    const body = source instanceof Blob ? source : streamOf(source, { onProgress, onChanged });
    const begun = performance.now();
    try {
      const written = await putFile(
        connection,
        { sid, path, body, size, mode, parents, exclusive },
        signal,
      );
      onProgress?.({ sent: size, total: size });
      return written;
    } catch (error) {
      if (changed) throw changed;
      // A file that is there now may be the one that was sent.
      if (!isPassing(error) || exclusive || attempt >= attempts) throw error;
      if (isForPieces) await losses.add(error, begun, signal);
      if (isForPieces && losses.areEnough) {
        const written = await sendInPieces(Math.min(large, Math.ceil(size / 2)));
        if (written) return written;
      }
      await http.pause(attempt, { error, signal });
    }
  }
}

const blobOf = (bytes: Uint8Array | string) =>
  new Blob([bytes as Uint8Array<ArrayBuffer> | string]);

/** `onChanged` is told why it does not end: the error of a request says that it was cut. */
function streamOf(
  source: Source,
  {
    onProgress,
    onChanged,
  }: Pick<WriteOptions, 'onProgress'> & { onChanged: (error: unknown) => void },
): ReadableStream {
  const { size: total } = source;
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      try {
        if (sent >= total) {
          // The file on the host is as before unless its body ends.
          await source.check?.();
          return controller.close();
        }
        const end = Math.min(total, sent + CHUNK);
        controller.enqueue(new Uint8Array(await source.slice(sent, end).arrayBuffer()));
        sent = end;
        onProgress?.({ sent, total });
      } catch (error) {
        onChanged(error);
        throw error;
      }
    },
  });
}
