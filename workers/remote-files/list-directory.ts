import type ssh2 from 'ssh2';
import { abortableOpen } from '../../shared/abort.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

export interface DirectoryEntry {
  name: string;
  /** Bytes. */
  size: number;
  /** `d` for a directory, `f` for anything else; of a link, the type of its target. */
  type: 'f' | 'd';
  modified: Date;
}

/** Status codes of draft-ietf-secsh-filexfer-02, section 7. */
const END_OF_FILE = 1;
const NO_SUCH_FILE = 2;
const PERMISSION_DENIED = 3;
/** POSIX st_mode. */
const TYPE_MASK = 0o170_000;
const DIRECTORY = 0o040_000;
const LINK = 0o120_000;

/** Requests in flight. One answer has some hundred entries at most; this keeps the host busy. */
const PIPELINED = 4;

/**
 * Lists a directory by SFTP, in the host's order, without `.` and `..`; each batch is one answer of the host. (ssh2's
 * own readdir by path collects the whole directory in memory.) Throws
 * `not_found`, `forbidden`, `invalid_input` (not a directory), `remote_connection_failed`, or the signal's reason.
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
    const directory = { sftp, path, request: makeRequester(sftp, signal) };
    const handle = await directory
      .request<Buffer>(done => sftp.opendir(path, done))
      .catch(async (error: unknown) => {
        throw await toError(error, directory);
      });
    const readAhead = () => {
      const batch = readBatch(handle, directory);
      // The caller may have stopped by the time it fails.
      batch.catch(() => {});
      return batch;
    };
    const batches = Array.from({ length: PIPELINED }, readAhead);
    // A server may answer out of order, so the end is reached when all requests have been answered.
    for (let next = batches.shift(); next; next = batches.shift()) {
      const batch = await next;
      if (!batch) continue;
      batches.push(readAhead());
      yield batch;
    }
  } finally {
    signal.removeEventListener('abort', close);
    sftp.end();
  }
}

type Request = <T>(
  send: (done: (error: Error | undefined, value: T) => void) => void,
) => Promise<T>;

interface Directory {
  sftp: ssh2.SFTPWrapper;
  path: string;
  request: Request;
}

/** The entries of the next answer; undefined at the end of the directory. */
async function readBatch(
  handle: Buffer,
  { sftp, path, request }: Directory,
): Promise<DirectoryEntry[] | undefined> {
  const found = await request<ssh2.FileEntryWithStats[]>(done => sftp.readdir(handle, done)).catch(
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
      link.attrs = await request<ssh2.Stats>(done =>
        sftp.stat(`${path.replace(/\/$/, '')}/${link.filename}`, done),
      ).catch((error: unknown) => {
        // A broken link is listed as a link.
        if (codeOf(error) !== undefined) return link.attrs;
        throw error;
      });
    }),
  );
  // Section 5 of the draft: every attribute is optional.
  return entries.map(({ filename, attrs: { mode = 0, size = 0, mtime = 0 } }) => ({
    name: filename,
    size,
    type: (mode & TYPE_MASK) === DIRECTORY ? 'd' : 'f',
    modified: new Date(mtime * 1_000),
  }));
}

/** Sends requests over the channel; rejects them, and all later ones, when it closes. */
function makeRequester(sftp: ssh2.SFTPWrapper, signal: AbortSignal): Request {
  const pending = new Set<(error: unknown) => void>();
  let lost: unknown;
  sftp.once('close', () => {
    lost = signal.aborted
      ? signal.reason
      : new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });
    for (const reject of pending) reject(lost);
  });
  return send =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (lost) throw lost;
      pending.add(reject);
      send((error, value) => {
        pending.delete(reject);
        if (error) reject(error);
        else resolve(value);
      });
    });
}

async function toError(error: unknown, { sftp, path, request }: Directory): Promise<unknown> {
  const code = codeOf(error);
  if (code === undefined) return error;
  // OpenSSH reports a file as a missing directory.
  const found = await request<ssh2.Stats>(done => sftp.stat(path, done)).catch(() => undefined);
  if (found && (found.mode & TYPE_MASK) !== DIRECTORY) {
    return new WindlassError('invalid_input', {
      detail: `Invalid parameters: path: ${path} is not a directory.`,
      hint: 'GET /api/remotes/(sid)/file/(path) reads a file.',
    });
  }
  if (code === NO_SUCH_FILE)
    return new WindlassError('not_found', { detail: `there is no ${path} on the host.` });
  if (code === PERMISSION_DENIED)
    return new WindlassError('forbidden', {
      detail: `the account may not read ${path} on the host.`,
    });
  const detail = `path: ${path} cannot be read: ${(error as Error).message}.`;
  return new WindlassError('invalid_input', { detail });
}

/** The status code of an SFTP answer; undefined for other errors, whose codes are strings. */
function codeOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
