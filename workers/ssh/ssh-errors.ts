import { WindlassError } from '../../shared/errors/errors.ts';
import { toUnusableError } from '../host-agent/protocol/hello.ts';
import { readable } from './host-words.ts';

/** An error of ssh2 about a channel or the connection. */
export class SshError extends Error {
  /** The command may have reached the host. */
  readonly sent: boolean;

  constructor(message: string, { sent, cause }: { sent: boolean; cause?: unknown }) {
    super(message, { cause });
    this.sent = sent;
  }
}

/** The server refused to start a command: for ever, or while the account has too many processes. */
export class ExecRefused extends SshError {
  /** Where no command has ever run. */
  readonly unusable = toUnusableError(
    'is given no command: the host refuses requests to run one',
    '',
  );

  constructor(cause: Error) {
    super(cause.message, { sent: false, cause });
  }
}

/** The server's answer to a request for SFTP, or what came in the place of SFTP. */
export class SftpError extends SshError {}

/** What a failed request for a channel means that was no refusal over an open connection. */
export function explainFailure(error: unknown, isClosed: boolean): unknown {
  if (error instanceof SftpError && !isClosed) return sftpUnavailable(error);
  if (error instanceof ExecRefused && !isClosed) return execRefused(error);
  return error instanceof SshError ? connectionFailed(error) : error;
}

function execRefused(cause: ExecRefused): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: 'The host refused to start a command.',
    hint: 'Try again: the account may have too many processes.',
    cause,
  });
}

function sftpUnavailable(cause: SftpError): WindlassError {
  return new WindlassError('sftp_unavailable', {
    detail: `the host offers no SFTP to this account (${readable(cause.message)}).`,
    hint: "Have the sftp subsystem enabled in the host's sshd_config. Commands work without it.",
    cause,
  });
}

/** For a host whose connection is good, and whose SFTP is of no use. */
export const breaksProtocol = (how: string) =>
  new WindlassError('sftp_unavailable', {
    detail: `the host's SFTP server breaks the protocol: ${how}.`,
    hint: 'Have another SFTP server set up on the host, such as that of OpenSSH. Commands work without it.',
  });

/** For a request of ssh2 for a command. */
export const toExecError = (error: Error) =>
  error.message === 'Unable to exec'
    ? new ExecRefused(error)
    : new SshError(error.message, { sent: !isRefusal(error), cause: error });

/** Whether a failed exec()'s command may have reached the host: not if its channel was refused or never requested. */
export function mayHaveBeenSent(error: unknown): boolean {
  return error instanceof WindlassError && error.cause instanceof SshError && error.cause.sent;
}

/** RFC 4254, 5.1: the server refused the channel; the connection is good. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && /open failure|channel open/i.test(error.message);
}

export function connectionFailed(cause?: SshError): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: cause?.message ?? 'The connection was lost.',
    hint: 'Try again.',
    cause,
  });
}
