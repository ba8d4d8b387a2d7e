import type ssh2 from 'ssh2';
import { abortableOpen } from '../../shared/abort.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

export interface DirectoryEntry {
  name: string;
  /** Bytes. */
  size: number;
  /** A directory, or anything else; of a link, what it leads to. */
  type: 'f' | 'd';
  modified: Date;
}

/** draft-ietf-secsh-filexfer-02, 7: what a server answers a request with that it cannot do. */
const END_OF_FILE = 1;
const NO_SUCH_FILE = 2;
const PERMISSION_DENIED = 3;
/** POSIX st_mode. */
const TYPE_MASK = 0o170_000;
const DIRECTORY = 0o040_000;
const LINK = 0o120_000;

/** One answer of the host holds some hundred entries at most: so many are asked for at once, and it never waits for us. */
const AHEAD = 4;

/**
 * The entries of a directory in the order the host has them, without `.` and `..`, as batches of what one answer of the
 * host holds. Throws `not_found`, `forbidden`, `invalid_input` (not a directory).
 */
export async function* listDirectory(
  session: RemoteSession,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<DirectoryEntry[]> {
  const sftp = await abortableOpen(session.sftp(signal), signal, late => late.end());
  const close = () => sftp.end();
  signal.addEventListener('abort', close, { once: true });
  try {
    const place = { sftp, path, ask: askOver(sftp, signal) };
    const handle = await place
      .ask<Buffer>(done => sftp.opendir(path, done))
      .catch(async (error: unknown) => {
        throw await explain(error, place);
      });
    const batches = Array.from({ length: AHEAD }, () => readBatch(handle, place));
    // A server may answer in another order than it was asked: the end is told by all that were asked.
    for (let next = batches.shift(); next; next = batches.shift()) {
      const batch = await next;
      if (!batch) continue;
      batches.push(readBatch(handle, place));
      yield batch;
    }
  } finally {
    signal.removeEventListener('abort', close);
    sftp.end();
  }
}

type Ask = <T>(request: (done: (error: Error | undefined, value: T) => void) => void) => Promise<T>;

interface Place {
  sftp: ssh2.SFTPWrapper;
  path: string;
  ask: Ask;
}

/** What the next answer of the host holds; undefined where there is no more. */
function readBatch(handle: Buffer, place: Place): Promise<DirectoryEntry[] | undefined> {
  const batch = askBatch(handle, place);
  // It is asked for ahead: the reader may have left by the time it fails.
  batch.catch(() => {});
  return batch;
}

async function askBatch(
  handle: Buffer,
  { sftp, path, ask }: Place,
): Promise<DirectoryEntry[] | undefined> {
  const found = await ask<ssh2.FileEntryWithStats[]>(done => sftp.readdir(handle, done)).catch(
    (error: unknown) => {
      if (codeOf(error) === END_OF_FILE) return undefined;
      throw error;
    },
  );
  if (!found) return undefined;
  const entries = found.filter(({ filename }) => filename !== '.' && filename !== '..');
  const links = entries.filter(({ attrs }) => (attrs.mode & TYPE_MASK) === LINK);
  await Promise.all(
    links.map(async link => {
      link.attrs = await ask<ssh2.Stats>(done =>
        sftp.stat(`${path.replace(/\/$/, '')}/${link.filename}`, done),
      ).catch((error: unknown) => {
        // A link that leads nowhere is shown as it is.
        if (codeOf(error) !== undefined) return link.attrs;
        throw error;
      });
    }),
  );
  // Section 5 of the draft lets a server leave any of them out.
  return entries.map(({ filename, attrs: { mode = 0, size = 0, mtime = 0 } }) => ({
    name: filename,
    size,
    type: (mode & TYPE_MASK) === DIRECTORY ? 'd' : 'f',
    modified: new Date(mtime * 1_000),
  }));
}

/** Makes requests over the channel; one that closes answers them with an error, those that come later too. */
function askOver(sftp: ssh2.SFTPWrapper, signal: AbortSignal): Ask {
  const pending = new Set<(error: unknown) => void>();
  let lost: unknown;
  sftp.once('close', () => {
    lost = signal.aborted
      ? signal.reason
      : new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });
    for (const reject of pending) reject(lost);
  });
  return request =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (lost) throw lost;
      pending.add(reject);
      request((error, value) => {
        pending.delete(reject);
        if (error) reject(error);
        else resolve(value);
      });
    });
}

async function explain(error: unknown, { sftp, path, ask }: Place): Promise<unknown> {
  const code = codeOf(error);
  if (code === undefined) return error;
  // OpenSSH says of a file that it is no such directory.
  const found = await ask<ssh2.Stats>(done => sftp.stat(path, done)).catch(() => undefined);
  if (found && (found.mode & TYPE_MASK) !== DIRECTORY) {
    return new WindlassError('invalid_input', {
      detail: `Invalid parameters: path: ${path} is not a directory.`,
      hint: 'GET /api/remotes/(sid)/file/(path) reads a file.',
    });
  }
  switch (code) {
    case NO_SUCH_FILE:
      return new WindlassError('not_found', {
        detail: `Not found: there is no ${path} on the host.`,
      });
    case PERMISSION_DENIED:
      return new WindlassError('forbidden', {
        detail: `Forbidden: the account may not read ${path} on the host.`,
      });
    default:
      return new WindlassError('invalid_input', {
        detail: `Invalid parameters: path: ${path} cannot be read: ${(error as Error).message}.`,
      });
  }
}

/** The status code of an SFTP answer; other errors have words as codes. */
function codeOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
