import { WindlassError } from '../../shared/errors/errors.ts';
import { DroppedBeforeLogin, FailedAfterCredential, unreachable } from './dial.ts';
import { type HostWords, quoteHost } from './host-words.ts';

interface FailedLogin {
  host: { address: string; port: number };
  words?: HostWords;
  /** Whether the host had shown its key when it failed. */
  hasShownKey?: boolean;
}

/**
 * What sshd, PAM and closed accounts' shells say at a login, or when asked for a command: surely not what passes, and
 * neither a rule for any account nor what is still to come.
 */
const CLOSED_ACCOUNT = new RegExp(
  [
    'password (?:has |is )?expired(?! in )',
    'password change required',
    'required to change your password immediately',
    '(?<!\\b(?:an|any) )account (?:has been |has |is )?(?:expired|locked|disabled)(?! in )',
    'account is currently not available',
    'logins? (?:is|are) not allowed for this account',
  ].join('|'),
  'i',
);

/** Translates an error of ssh2 about a connection attempt, with the host's words. */
export function toLoginError(
  error: Error & { level?: string; code?: string },
  { host, words, hasShownKey = true }: FailedLogin,
): WindlassError {
  if (error instanceof WindlassError) return error;
  if (error.level === 'client-authentication') {
    return new WindlassError('remote_authentication_failed', {
      detail: `The host refused the user name, password or key.${quoteHost(words?.banner ?? '')}`,
      hint: 'Open a new session with credentials that the host accepts.',
      cause: error,
    });
  }
  if (/no matching (?!host key)/.test(error.message))
    return new WindlassError('remote_connection_failed', {
      detail: `${host.address}:${host.port}: ${error.message}.`,
      hint: 'The host knows none of those that are used here. Where it has only older ones, SSH_ALGORITHMS of the workers may add some of them.',
      cause: error,
    });
  const said = words?.aboutLogin ?? '';
  if (error.level === 'client-timeout')
    return unreachable(
      host,
      `the SSH server did not answer, or did not finish the login, in time.${quoteHost(said)}`,
      said ? new FailedAfterCredential(error.message) : error,
    );
  // sshd says why PAM lets nobody in to this account, and hangs up.
  if (CLOSED_ACCOUNT.test(said)) return accountUnusable(said, error);
  if (/^Bad packet length/.test(error.message))
    return unreachable(
      host,
      'it sent a message of more than 35,000 bytes, such as a banner of that size, or is no SSH server.',
      error,
    );
  const isHangUp = /before handshake/.test(error.message) || error.code === 'ECONNRESET';
  const cause = words?.isCredentialSent
    ? new FailedAfterCredential(error.message)
    : new DroppedBeforeLogin(error.message, { isUnseen: isHangUp && !hasShownKey });
  return unreachable(host, `${error.message}.${quoteHost(said)}`, cause);
}

/** The error of an account that the host lets nobody use, whatever the credential. */
export function accountUnusable(words: string, cause?: unknown): WindlassError {
  return new WindlassError('account_unusable', {
    detail: `the host accepted the login, but lets this account run nothing.${quoteHost(words)}`,
    hint: 'Log in with ssh and a terminal, change the password where the host asks for that, or ask its administrators.',
    cause,
  });
}

/** Replaces an error that quotes an account's words if these say that the account is closed. */
export function explainAccount(error: unknown): unknown {
  if (!(error instanceof WindlassError) || !CLOSED_ACCOUNT.test(error.message)) return error;
  return accountUnusable(error.message.replace(/^[^:]*: /, ''), error);
}
