import type ssh2 from 'ssh2';
import { invalid, WindlassError } from '../../shared/errors/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { breaksProtocol } from '../ssh/ssh-errors.ts';
import { isDirectory, isLink, openSftp, type Sftp, STATUS, statusOf } from './sftp-requests.ts';

export interface DirectoryEntry {
  name: string;
  /** Bytes. */
  size: number;
  /** `d` for a directory, `f` for anything else; of a link, the type of its target. */
  type: 'f' | 'd';
  modified: Date;
}

/** Requests in flight, which keep the host busy: one answer has a few hundred entries at most. */
const PIPELINED = 4;
/** Answers in a row without an entry, after which a directory has no end. */
const MAX_EMPTY = 1_000;

/**
 * Lists a directory by SFTP in the host's order, without `.` and `..`, one answer per batch; ssh2's readdir by path
 * would hold all in memory. Throws `not_found`, `forbidden`, `invalid_input` (no directory), `sftp_unavailable`,
 * `remote_connection_failed`, or the signal's reason.
 */
export async function* listDirectory(
  session: RemoteSession,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<DirectoryEntry[]> {
  const channel = await openSftp(session, signal);
  const { sftp } = channel;
  try {
    const directory = { ...channel, path };
    const handle = await directory
      .request('handle', done => sftp.opendir(path, done))
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
    let empty = 0;
    // Answers may come out of order, so the end needs the answers to all requests.
    for (let next = batches.shift(); next; next = batches.shift()) {
      const batch = await next;
      if (!batch) continue;
      empty = batch.length > 0 ? 0 : empty + 1;
      if (empty > MAX_EMPTY) throw breaksProtocol('it lists a directory that never ends');
      batches.push(readAhead());
      yield batch;
    }
  } finally {
    sftp.end();
  }
}

interface Directory extends Sftp {
  path: string;
}

/** The entries of the next answer; undefined at the end of the directory. */
async function readBatch(
  handle: Buffer,
  { sftp, path, request }: Directory,
): Promise<DirectoryEntry[] | undefined> {
  const found = await request('names', done => readNames(sftp, handle, done)).catch(
    (error: unknown) => {
      if (statusOf(error) === STATUS.endOfFile) return undefined;
      throw error;
    },
  );
  if (!found) return undefined;
  const entries = found.filter(({ filename }) => filename !== '.' && filename !== '..');
  const links = entries.filter(({ attrs }) => isLink(attrs));
  await Promise.all(
    links.map(async link => {
      link.attrs = await request('attributes', done =>
        sftp.stat(`${path.replace(/\/$/, '')}/${link.filename}`, done),
      ).catch((error: unknown) => {
        // A broken link is listed as a link.
        if (statusOf(error) !== undefined) return link.attrs;
        throw error;
      });
    }),
  );
  // Section 5 of the draft: every attribute is optional.
  return entries.map(({ filename, attrs: { mode = 0, size = 0, mtime = 0 } }) => ({
    name: filename,
    size,
    type: isDirectory({ mode }) ? 'd' : 'f',
    modified: new Date(mtime * 1_000),
  }));
}

/** `full`, which the types of ssh2 lack: it would filter the names of an answer that has none. */
const readNames = (
  sftp: ssh2.SFTPWrapper,
  ...[handle, done]: Parameters<ssh2.SFTPWrapper['readdir']>
) => Reflect.apply(sftp.readdir, sftp, [handle, { full: true }, done]);

async function toError(error: unknown, { sftp, path, request }: Directory): Promise<unknown> {
  const code = statusOf(error);
  if (code === undefined) return error;
  // OpenSSH reports a file as a missing directory.
  const found = await request('attributes', done => sftp.stat(path, done)).catch(() => undefined);
  if (found && !isDirectory(found)) {
    return invalid(
      `path: ${path} is not a directory.`,
      'GET /api/remotes/(sid)/file/(path) reads a file.',
    );
  }
  if (code === STATUS.noSuchFile)
    return new WindlassError('not_found', { detail: `there is no ${path} on the host.` });
  if (code === STATUS.permissionDenied)
    return new WindlassError('forbidden', {
      detail: `the account may not read ${path} on the host.`,
    });
  const detail = `path: ${path} cannot be read: ${(error as Error).message}.`;
  return new WindlassError('invalid_input', { detail });
}
