import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors.ts';

/** Status codes of draft-ietf-secsh-filexfer-02, section 7. */
export const STATUS = { endOfFile: 1, noSuchFile: 2, permissionDenied: 3 };
/** POSIX st_mode. */
const TYPE_MASK = 0o170_000;
const TYPES = { directory: 0o040_000, link: 0o120_000, file: 0o100_000 };

type Typed = Pick<ssh2.Attributes, 'mode'>;
export const isDirectory = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.directory;
export const isLink = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.link;
export const isRegularFile = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.file;

export type Request = <T>(
  send: (done: (error: Error | undefined, value: T) => void) => void,
) => Promise<T>;

/** Sends requests over the channel; rejects them, and all later ones, when it closes. */
export function makeRequester(sftp: ssh2.SFTPWrapper, signal: AbortSignal): Request {
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
