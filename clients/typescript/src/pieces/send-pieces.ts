import type { Connection } from '../connection.ts';
import { WindlassError } from '../error.ts';
import type { WrittenFile } from '../put-file.ts';
import type { Source } from '../send-parts.ts';
import { createSha256, toHex } from '../sha256.ts';
import { PieceSender } from './piece-sender.ts';
import { joinPieces, nameOf, type Pieces, preparePieces, removePieces } from './pieces-on-host.ts';
import type { ScriptSession } from './script-on-host.ts';

const PARALLEL = 4;
const REMOVE_MS = 60_000;

/** A file that is to be on the host. */
export interface FileInPieces {
  session: ScriptSession;
  path: string;
  source: Source;
  /** Bytes of a piece at first. */
  length: number;
}

/** As of writeFile(). */
interface Options {
  attempts: number;
  mode?: number;
  parents?: boolean;
  resume?: { what: string; state: string };
  onProgress?: (progress: { sent: number; total: number }) => void;
  signal?: AbortSignal;
}

/**
 * Writes a file on the host, whole or not at all, in pieces in a folder beside it. When all are there a command joins
 * them, and verifies the file's size and digest.
 */
export async function sendPieces(
  connection: Connection,
  file: FileInPieces,
  options: Options,
): Promise<WrittenFile> {
  const { session, path, source } = file;
  const { resume, parents, signal } = options;
  const { what, state } = resume ?? { what: newWord(), state: 'once' };
  if (!/^\w+$/.test(what) || !/^\w+$/.test(state))
    throw new TypeError('The names in `resume` are of letters and digits.');
  const folder = `.windlass-${what}-${state}`;
  const pieces = await preparePieces(session, { target: path, parents, folder }, signal);
  try {
    const { names, digest } = await sendMissing(connection, pieces, file, options);
    // No file is made of two states.
    await source.check?.();
    const whole = { names, size: source.size, digest: toHex(digest), mode: options.mode };
    if (!(await joinPieces(session, pieces, whole, signal))) throw changed(path);
    return { path, size: source.size, digest: btoa(String.fromCharCode(...digest)) };
  } catch (error) {
    if (!resume || takesNoPieces(error))
      removePieces(session, pieces, AbortSignal.timeout(REMOVE_MS)).catch(() => {});
    throw error;
  }
}

/** Pieces need a folder of the account alone, and names that are given by links, so that nothing is written over. */
export const takesNoPieces = (error: unknown) =>
  error instanceof WindlassError && /^(not_private|forbidden|sftp_unavailable)$/.test(error.code);

/** Sends what is not there, several pieces at once. The names of all pieces in their order, and the file's SHA-256. */
async function sendMissing(
  connection: Connection,
  { folder, stored }: Pieces,
  { session, path, source, length }: FileInPieces,
  options: Options,
): Promise<{ names: string[]; digest: Uint8Array }> {
  const { size: total } = source;
  const { attempts, onProgress } = options;
  const { sid } = session;
  const sender = new PieceSender(connection, { sid, folder, length, total, attempts });
  const hash = createSha256();
  const names: { start: number; name: string }[] = [];
  let sent = 0;
  const keep = (start: number, size: number) => {
    names.push({ start, name: nameOf(start, size) });
    sent += size;
    onProgress?.({ sent, total });
  };
  const underWay = new Set<Promise<void>>();
  const failed = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const send = (start: number, bytes: Uint8Array) =>
    sender.send({ start, bytes }, { signal, onSent: keep }).catch(error => {
      // Another copy of the file that was through has removed the folder.
      throw error.code === 'not_found' ? changed(path) : error;
    });
  try {
    for (let start = 0; start < total; ) {
      const whole = stored.get(start) ?? 0;
      const size = whole || Math.min(sender.length, gapFrom(start, stored), total - start);
      const bytes = new Uint8Array(await source.slice(start, start + size).arrayBuffer());
      hash.update(bytes);
      if (whole) keep(start, size);
      else {
        const one = send(start, bytes).finally(() => underWay.delete(one));
        one.catch(error => failed.abort(error));
        underWay.add(one);
      }
      start += size;
      if (underWay.size >= PARALLEL) await Promise.race(underWay);
      signal.throwIfAborted();
    }
    await Promise.all(underWay);
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(underWay);
    throw error;
  }
  signal.throwIfAborted();
  names.sort((a, b) => a.start - b.start);
  return { names: names.map(({ name }) => name), digest: hash.digest() };
}

/** Bytes to the next piece that is there. */
const gapFrom = (start: number, stored: Map<number, number>): number =>
  Math.min(...[...stored.keys()].filter(next => next > start)) - start;

const newWord = (): string => toHex(crypto.getRandomValues(new Uint8Array(8)));

const changed = (path: string) =>
  new WindlassError({
    code: 'changed',
    detail: `What was to be written to ${path} has changed while it was sent.`,
    hint: 'Send it when nothing writes to it.',
  });
