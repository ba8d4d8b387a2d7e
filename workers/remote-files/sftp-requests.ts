import type ssh2 from 'ssh2';
import { WindlassError } from '../../shared/errors/errors.ts';
import { abortableOpen } from '../../shared/process/abort.ts';
import { readable } from '../ssh/host-words.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { breaksProtocol } from '../ssh/ssh-errors.ts';

/**
 * A server that answers nothing for so long has failed. Longer than a restart of an NFS server, or than a disk takes to
 * write what the host's memory holds of a file.
 */
const ANSWER_MS = 300_000;

/** Bytes of one request to read or write: what every server takes. */
export const CHUNK_BYTES = 32_768;

/** Status codes of draft-ietf-secsh-filexfer-02, section 7. */
export const STATUS = {
  endOfFile: 1,
  noSuchFile: 2,
  permissionDenied: 3,
  failure: 4,
  badMessage: 5,
  unsupported: 8,
};
/** POSIX st_mode. */
const TYPE_MASK = 0o170_000;
const TYPES = { directory: 0o040_000, link: 0o120_000, file: 0o100_000 };

type Typed = Pick<ssh2.Attributes, 'mode'>;
export const isDirectory = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.directory;
export const isLink = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.link;
export const isRegularFile = ({ mode }: Typed) => (mode & TYPE_MASK) === TYPES.file;

/** What requests are answered with. ssh2 passes on an answer of any kind. */
interface Answers {
  handle: Buffer;
  attributes: ssh2.Stats;
  names: ssh2.FileEntryWithStats[];
  path: string;
  count: number;
  status: undefined;
}

const isAnswer: Record<keyof Answers, (value: unknown) => boolean> = {
  handle: value => Buffer.isBuffer(value),
  attributes: value =>
    typeof value === 'object' && !Buffer.isBuffer(value) && !Array.isArray(value),
  names: value => Array.isArray(value),
  // No path of a host has a NUL character.
  path: value => typeof value === 'string' && !value.includes('\0'),
  count: value => typeof value === 'number',
  status: value => value === undefined,
};

type Request = <Kind extends keyof Answers>(
  kind: Kind,
  send: (done: (error?: Error | null, value?: Answers[Kind]) => void) => void,
) => Promise<Answers[Kind]>;

/** An SFTP channel, whose requests reject when it closes. */
export interface Sftp {
  sftp: ssh2.SFTPWrapper;
  /** Sends a request that is answered with a value. */
  request: Request;
  /** Sends a request that is answered with a status alone. */
  act(send: (done: (error?: Error | null) => void) => void): Promise<void>;
}

interface SftpOptions {
  /** How long the server may take for an answer. Default 300,000. */
  answerMs?: number;
}

/** Opens an SFTP channel on the session. Close it with `sftp.end()`. */
export async function openSftp(
  session: RemoteSession,
  signal: AbortSignal,
  { answerMs = ANSWER_MS }: SftpOptions = {},
): Promise<Sftp> {
  const sftp = await abortableOpen(session.sftp(signal), signal, late => late.end());
  const request = makeRequester(sftp, { signal, answerMs });
  return {
    sftp,
    request,
    act: send => request('status', send),
  };
}

/** Calls `work` with an SFTP channel on the session, and closes it. */
export async function withSftp<T>(
  session: RemoteSession,
  signal: AbortSignal,
  work: (channel: Sftp) => Promise<T>,
  options: SftpOptions = {},
): Promise<T> {
  const channel = await openSftp(session, signal, options);
  try {
    return await work(channel);
  } finally {
    channel.sftp.end();
  }
}

/**
 * Sends requests over the channel. All are rejected, and later ones at once, when it closes, the signal is aborted or
 * no answer comes for too long: sshd may keep the channel open while its SFTP server waits for a disk.
 */
function makeRequester(
  sftp: ssh2.SFTPWrapper,
  { signal, answerMs }: { signal: AbortSignal; answerMs: number },
): Request {
  const pending = new Set<(error: unknown) => void>();
  let lost: unknown;
  let silence: NodeJS.Timeout | undefined;
  const rejectAll = (error: unknown) => {
    lost ??= error;
    clearTimeout(silence);
    for (const reject of pending) reject(lost);
    pending.clear();
  };
  const giveUp = (error: unknown) => {
    rejectAll(error);
    sftp.end();
  };
  const onAbort = () => giveUp(signal.reason);
  sftp.once('error', (error: Error) => rejectAll(breaksProtocol(error.message)));
  signal.addEventListener('abort', onAbort, { once: true });
  sftp.once('close', () => {
    signal.removeEventListener('abort', onAbort);
    rejectAll(whyLost(signal));
  });
  return (kind, send) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (lost) throw lost;
      if (pending.size === 0) silence = setTimeout(() => giveUp(tooSilent(answerMs)), answerMs);
      pending.add(reject);
      send((error, value) => {
        pending.delete(reject);
        if (pending.size === 0) clearTimeout(silence);
        else silence?.refresh();
        if (error) reject(statusOf(error) === undefined ? toFailure(error, signal) : clean(error));
        else if (isAnswer[kind](value)) resolve(value as Answers[typeof kind]);
        else reject(breaksProtocol(`it answers a request for a ${kind} with something else`));
      });
    });
}

/** Not `remote_connection_failed`: whoever tries that again would wait as long again. */
const tooSilent = (ms: number) =>
  new WindlassError('time_limit', {
    detail: `the host's SFTP server did not answer for ${ms / 1_000} s; it may still do what it was asked for.`,
    hint: 'Check that the disk of the path answers on the host, and what is there; then try again.',
  });

/** The host's words of an error as text for people. */
const clean = (error: Error) => Object.assign(error, { message: readable(error.message) });

/** What an error of ssh2 itself means. Before a channel closes, it answers with one what is under way. */
const toFailure = (error: Error, signal: AbortSignal): unknown =>
  error.message === 'No response from server' ? whyLost(signal) : breaksProtocol(error.message);

const whyLost = (signal: AbortSignal): unknown =>
  signal.aborted
    ? signal.reason
    : new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });

/** The status code of an SFTP answer; undefined for other errors, whose codes are strings. */
export function statusOf(error: unknown): number | undefined {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}

/** A refusal whose cause SFTP does not tell: of errors of the kernel it knows but a few, and calls a name too long a bad message. */
export const isUnexplained = (error: unknown): boolean => {
  const status = statusOf(error);
  return status === STATUS.failure || status === STATUS.badMessage;
};

/** A server without this extension; ssh2 throws an error of its own. */
export const isUnsupported = (error: unknown) =>
  statusOf(error) === STATUS.unsupported ||
  (error as Error).message === 'Server does not support this extended request';
