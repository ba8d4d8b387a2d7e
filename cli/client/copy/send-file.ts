import { createHash } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, posix } from 'node:path';
import { backoff, sleep } from '../../../clients/typescript/src/backoff.ts';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import { isPassing } from '../../../clients/typescript/src/http.ts';
import { type OpenedFile, openFile } from '../../../clients/typescript/src/node.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { Turns } from '../../../clients/typescript/src/turns.ts';
import { CommandError } from '../../command-error.ts';
import type { ProgressLine } from '../progress.ts';
import { joinPieces, type Pieces, preparePieces } from './pieces-on-host.ts';
import { startOver } from './start-over.ts';

export interface Sending {
  session: Session;
  /** Here. */
  file: string;
  /** Absolute, there. */
  target: string;
  /** Makes the folders that are missing. */
  parents: boolean;
  line: ProgressLine;
}

const PIECE_BYTES = 8 << 20;
/** Each is a job: of a file that would have more the pieces are larger. */
const MOST_PIECES = 1_000;
const PARALLEL = 4;
/** How often a piece is sent again whose connection was lost. */
const ATTEMPTS = 10;

/**
 * Copies a file to a host: it is there whole, or as before. A large one goes in pieces, which stay there until they are all
 * there, so that another process can go on. The file's size.
 */
export function sendFile(given: Sending): Promise<number> {
  return startOver(async () => {
    const source = await openFile(given.file).catch((cause: unknown) => {
      if (cause instanceof WindlassError) throw cause;
      throw new CommandError(`${given.file} cannot be read.`, { cause });
    });
    try {
      const send = source.size > PIECE_BYTES ? sendInPieces : sendAtOnce;
      await send(source, given);
      return source.size;
    } finally {
      await source.close();
    }
  });
}

async function sendAtOnce(
  source: OpenedFile,
  { session, file, target, parents, line }: Sending,
): Promise<void> {
  await session.writeFile(target, source, {
    ...{ parents, mode: statSync(file).mode & 0o777 },
    onProgress: ({ sent, total }) => showSent(line, sent, total),
  });
}

async function sendInPieces(source: OpenedFile, given: Sending): Promise<void> {
  const { session, file, target, parents } = given;
  const before = stateOf(file);
  const what = shortHash(JSON.stringify([hostname(), realpathSync(file), target]));
  const folder = `.windlass-${what}-${shortHash(before)}`;
  const pieces = await preparePieces(session, { target, parents, folder });
  const digest = await sendMissing(source, pieces, given);
  // Of two states no file is made.
  if (stateOf(file) !== before) throw changed(file);
  const mode = statSync(file).mode & 0o777;
  const isWhole = await joinPieces(session, pieces, { size: source.size, digest, mode });
  if (!isWhole) throw changed(file);
}

/** Inode, size and the times of the last changes, in nanoseconds. */
function stateOf(file: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
  return [ino, size, mtimeNs, ctimeNs].join(' ');
}

/** Sends what is not there, several pieces at once; the SHA-256 of the whole file. */
async function sendMissing(
  source: OpenedFile,
  { folder, stored }: Pieces,
  { session, file, line }: Sending,
): Promise<string> {
  const { size: total } = source;
  const length = Math.max(PIECE_BYTES, Math.ceil(total / MOST_PIECES));
  const hash = createHash('sha256');
  let sent = 0;
  const underWay = new Set<Promise<void>>();
  const failed = new AbortController();
  const { signal } = failed;
  const turns = new Turns();
  const send = async (name: string, bytes: Uint8Array) => {
    const path = posix.join(folder, name);
    if (stored.get(name) !== bytes.length)
      await sendPiece(session, { path, bytes, turns, signal }).catch(error => {
        // Another copy of the file that was through has removed the folder.
        throw error.code === 'not_found' ? changed(file) : error;
      });
    sent += bytes.length;
    showSent(line, sent, total);
  };
  try {
    for (let start = 0; start < total; start += length) {
      const end = Math.min(total, start + length);
      const bytes = new Uint8Array(await source.slice(start, end).arrayBuffer());
      hash.update(bytes);
      const name = String(start / length).padStart(6, '0');
      const one = send(name, bytes).finally(() => underWay.delete(one));
      one.catch(error => failed.abort(error));
      underWay.add(one);
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
  return hash.digest('hex');
}

async function sendPiece(
  session: Session,
  {
    path,
    bytes,
    turns,
    signal,
  }: { path: string; bytes: Uint8Array; turns: Turns; signal: AbortSignal },
): Promise<void> {
  // Most often the folder that another copy removed can be made again.
  const options = { mode: 0o600, parents: true, attempts: 0, signal };
  for (let attempt = 0; ; attempt++) {
    try {
      await turns.take(() => session.writeFile(path, bytes, options));
      return;
    } catch (error) {
      if (!isPassing(error) || attempt === ATTEMPTS) throw error;
      await sleep(backoff(attempt), signal);
    }
  }
}

function showSent(line: ProgressLine, sent: number, total: number): void {
  line.show(total === 0 ? 1 : sent / total, `of ${total} bytes sent`);
}

const shortHash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

const changed = (file: string) =>
  new WindlassError({
    code: 'changed',
    detail: `${basename(file)} has changed while it was copied.`,
    hint: 'Copy it when nothing writes to it.',
  });
