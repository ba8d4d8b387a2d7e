import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortableOpen } from '../../shared/process/abort.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Status codes of draft-ietf-secsh-filexfer-02, section 7. */
export const STATUS = {
  ...{ endOfFile: 1, noSuchFile: 2, permissionDenied: 3, failure: 4, unsupported: 8 },
};
/** POSIX st_mode. */
const TYPE_MASK = 0o170_000;
const TYPES = { directory: 0o040_000, link: 0o120_000, file: 0o100_000 };

type Typed = Pick<ssh2.Attributes, 'mode'>;
export const isDirectory = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.directory;
export const isLink = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.link;
export const isRegularFile = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.file;

type Request = <T>(
  send: (done: (error: Error | undefined, value: T) => void) => void,
) => Promise<T>;

/** An SFTP channel, whose requests reject when it closes. */
export interface Sftp {
  sftp: ssh2.SFTPWrapper;
  /** Sends a request that is answered with a value. */
  request: Request;
  /** Sends a request that is answered with a status alone. */
  act(send: (done: (error?: Error | null) => void) => void): Promise<void>;
}

/** Opens an SFTP channel on the session. Close it with `sftp.end()`. */
export async function openSftp(session: RemoteSession, signal: AbortSignal): Promise<Sftp> {
  const sftp = await abortableOpen(session.sftp(signal), signal, late => late.end());
  const close = () => sftp.end();
  signal.addEventListener('abort', close, { once: true });
  sftp.once('close', () => signal.removeEventListener('abort', close));
  const request = makeRequester(sftp, signal);
  return {
    ...{ sftp, request },
    act: send => request<void>(done => send(error => done(error ?? undefined))),
  };
}

/** Calls `work` with an SFTP channel on the session, and closes it. */
export async function withSftp<T>(
  session: RemoteSession,
  signal: AbortSignal,
  work: (channel: Sftp) => Promise<T>,
): Promise<T> {
  const channel = await openSftp(session, signal);
  try {
    return await work(channel);
  } finally {
    channel.sftp.end();
  }
}

/** Sends requests over the channel; rejects them, and all later ones, when it closes. */
function makeRequester(sftp: ssh2.SFTPWrapper, signal: AbortSignal): Request {
  const pending = new Set<(error: unknown) => void>();
  let lost: unknown;
  sftp.once('close', () => {
    lost = whyLost(signal);
    for (const reject of pending) reject(lost);
  });
  return send =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (lost) throw lost;
      pending.add(reject);
      send((error, value) => {
        pending.delete(reject);
        // Before it closes, ssh2 answers what is under way with errors of its own.
        if (error) reject(statusOf(error) === undefined ? whyLost(signal) : error);
        else resolve(value);
      });
    });
}

const whyLost = (signal: AbortSignal): unknown =>
  signal.aborted
    ? signal.reason
    : new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });

/** The status code of an SFTP answer; undefined for other errors, whose codes are strings. */
export function statusOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
