import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors.ts';
import type { RemoteSession } from './remote-session.ts';

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

/**
 * The entries of a directory in the order the host has them, without `.` and `..`, as batches of what one answer of the
 * host holds. Throws `not_found`, `forbidden`, `invalid_input` (not a directory).
 */
export async function* listDirectory(
  session: RemoteSession,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<DirectoryEntry[]> {
  const sftp = await session.sftp(signal);
  const close = () => sftp.end();
  signal.addEventListener('abort', close, { once: true });
  try {
    const handle = await ask<Buffer>(sftp, signal, done => sftp.opendir(path, done)).catch(
      async (error: unknown) => {
        throw await explain(error, { sftp, path, signal });
      },
    );
    for (;;) {
      const batch = await ask<ssh2.FileEntryWithStats[] | undefined>(sftp, signal, done =>
        sftp.readdir(handle, done),
      ).catch((error: unknown) => {
        if (codeOf(error) === END_OF_FILE) return undefined;
        throw error;
      });
      if (!batch) return;
      yield await Promise.all(
        batch
          .filter(({ filename }) => filename !== '.' && filename !== '..')
          .map(entry => describe(entry, { sftp, path, signal })),
      );
    }
  } finally {
    signal.removeEventListener('abort', close);
    sftp.end();
  }
}

interface Place {
  sftp: ssh2.SFTPWrapper;
  path: string;
  signal: AbortSignal;
}

async function describe(
  { filename, attrs }: ssh2.FileEntryWithStats,
  { sftp, path, signal }: Place,
): Promise<DirectoryEntry> {
  let { mode, size, mtime } = attrs;
  if ((mode & TYPE_MASK) === LINK) {
    const target = await ask<ssh2.Stats>(sftp, signal, done =>
      sftp.stat(`${path.replace(/\/$/, '')}/${filename}`, done),
    ).catch((error: unknown) => {
      // A link that leads nowhere is shown as it is.
      if (codeOf(error) !== undefined) return attrs;
      throw error;
    });
    ({ mode, size, mtime } = target);
  }
  return {
    name: filename,
    size,
    type: (mode & TYPE_MASK) === DIRECTORY ? 'd' : 'f',
    modified: new Date(mtime * 1_000),
  };
}

/** One request; a channel that closes answers it with an error. */
function ask<T>(
  sftp: ssh2.SFTPWrapper,
  signal: AbortSignal,
  request: (done: (error: Error | undefined, value: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onClose = () =>
      reject(
        signal.aborted
          ? signal.reason
          : new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' }),
      );
    sftp.once('close', onClose);
    request((error, value) => {
      sftp.off('close', onClose);
      if (error) reject(error);
      else resolve(value);
    });
  });
}

async function explain(error: unknown, { sftp, path, signal }: Place): Promise<unknown> {
  const code = codeOf(error);
  if (code === undefined) return error;
  // OpenSSH says of a file that it is no such directory.
  const found = await ask<ssh2.Stats>(sftp, signal, done => sftp.stat(path, done)).catch(
    () => undefined,
  );
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
