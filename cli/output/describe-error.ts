import { WindlassError } from '../../clients/typescript/src/error.ts';
import { CommandError, errnoOf } from '../command-error.ts';
import { adviseOnNetwork } from '../network.ts';
import { ownHint } from './own-hints.ts';

/** One line for people: what went wrong, and what to do. */
export function describeError(error: WindlassError): string {
  const { detail, requestId, status } = error;
  const next = advise(error);
  const request = status >= 500 && requestId ? `(request ${requestId})` : undefined;
  return [detail, next, request].filter(Boolean).join(' ');
}

function advise({ status, code, detail, hint, cause }: WindlassError): string | undefined {
  if (status === 401) return adviseLogin(detail);
  return code === 'unreachable' ? adviseOnNetwork(cause) : ownHint(hint);
}

/** Who has just mistyped a password has no other login to make. */
const adviseLogin = (detail: string) =>
  detail.includes('password is wrong') ? undefined : 'Log in again: windlass login URL.';

/** Makes one line of a text: a host or its batch system may have said several. */
export const joinLines = (text: string): string =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .join(' ');

/** One line for an error of a command; undefined where the fault is the program's own. */
export function describe(error: unknown): string | undefined {
  if (error instanceof WindlassError) return joinLines(describeError(error));
  if (error instanceof CommandError)
    return joinLines([error.message, error.hint].filter(Boolean).join(' '));
  // In these words undici says that the connection of a body was cut.
  if (error instanceof TypeError && error.message === 'terminated')
    return 'The connection was lost before all had come. Try again.';
  // The message is such as `EACCES: permission denied, open '/etc/copied'`.
  if (errnoOf(error) !== undefined && error instanceof Error && 'syscall' in error)
    return `${error.message}.`;
  return undefined;
}
