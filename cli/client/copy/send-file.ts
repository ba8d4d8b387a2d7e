import { createHash } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import { isPassing } from '../../../clients/typescript/src/http.ts';
import { type OpenedFile, openFile } from '../../../clients/typescript/src/node.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError } from '../../command-error.ts';
import type { ProgressLine } from '../progress.ts';
import { LEAST_BYTES, PieceSender } from './piece-sender.ts';
import { joinPieces, nameOf, type Pieces, preparePieces } from './pieces-on-host.ts';
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
/** Each is a job: of a file that would have more the pieces are larger at first. */
const FIRST_PIECES = 1_000;
const PARALLEL = 4;
/** So often a file that is sent at once is lost before it is sent in pieces. */
const LOSSES = 2;

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
      const { size } = source;
      const length = Math.max(PIECE_BYTES, Math.ceil(size / FIRST_PIECES));
      if (size > PIECE_BYTES) await sendInPieces(source, given, length);
      else if (!(await sendAtOnce(source, given)))
        await sendInPieces(source, given, Math.ceil(size / 2));
      return size;
    } finally {
      await source.close();
    }
  });
}

/** False where the link is cut before it is through, and pieces may be. */
async function sendAtOnce(
  source: OpenedFile,
  { session, file, target, parents, line }: Sending,
): Promise<boolean> {
  const isSmall = source.size <= LEAST_BYTES;
  try {
    await session.writeFile(target, source, {
      ...{ parents, mode: statSync(file).mode & 0o777 },
      attempts: isSmall ? Infinity : LOSSES - 1,
      onProgress: ({ sent, total }) => showSent(line, sent, total),
    });
    return true;
  } catch (error) {
    if (isSmall || !isPassing(error)) throw error;
    return false;
  }
}

/** Of this length at first. */
async function sendInPieces(source: OpenedFile, given: Sending, length: number): Promise<void> {
  const { session, file, target, parents } = given;
  const before = stateOf(file);
  const what = shortHash(JSON.stringify([hostname(), realpathSync(file), target]));
  const folder = `.windlass-${what}-${shortHash(before)}`;
  const pieces = await preparePieces(session, { target, parents, folder });
  const { names, digest } = await sendMissing(source, pieces, given, length);
  // Of two states no file is made.
  if (stateOf(file) !== before) throw changed(file);
  const mode = statSync(file).mode & 0o777;
  const isWhole = await joinPieces(session, pieces, { names, size: source.size, digest, mode });
  if (!isWhole) throw changed(file);
}

/** Inode, size and the times of the last changes, in nanoseconds. */
function stateOf(file: string): string {
  const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
  return [ino, size, mtimeNs, ctimeNs].join(' ');
}

/** Sends what is not there, several pieces at once. The names of all pieces in their order, and the file's SHA-256. */
async function sendMissing(
  source: OpenedFile,
  { folder, stored }: Pieces,
  { session, file, line }: Sending,
  length: number,
): Promise<{ names: string[]; digest: string }> {
  const { size: total } = source;
  const sender = new PieceSender({ session, folder, length, total });
  const hash = createHash('sha256');
  const names: { start: number; name: string }[] = [];
  let sent = 0;
  const keep = (start: number, size: number) => {
    names.push({ start, name: nameOf(start, size) });
    sent += size;
    showSent(line, sent, total);
  };
  const underWay = new Set<Promise<void>>();
  const failed = new AbortController();
  const { signal } = failed;
  const send = (start: number, bytes: Uint8Array) =>
    sender.send({ start, bytes }, { signal, onSent: keep }).catch(error => {
      // Another copy of the file that was through has removed the folder.
      throw error.code === 'not_found' ? changed(file) : error;
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
  return { names: names.map(({ name }) => name), digest: hash.digest('hex') };
}

/** Bytes to the next piece that is there. */
const gapFrom = (start: number, stored: Map<number, number>): number =>
  Math.min(...[...stored.keys()].filter(next => next > start)) - start;

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
