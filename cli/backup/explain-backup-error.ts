import { describeOutage, isDatabaseDown, sqlState } from '../../shared/database/connect.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { CommandError } from '../command-error.ts';

/**
 * The error of a backup or restore in one line for its user; an unforeseen error stays as it is. `what` begins the
 * line, such as "The backup was not made".
 */
export function explainBackupError(error: unknown, what: string): unknown {
  if (!(error instanceof Error)) return error;
  const because = (why: string) => new CommandError(`${what}: ${why}.`, { cause: error });
  if (error instanceof CommandError) {
    const { message, hint } = error;
    return new CommandError(`${what}: ${message}`, { hint, cause: error });
  }
  if (isDatabaseDown(error)) return because(describeOutage(error));
  if (error instanceof WindlassError || sqlState(error) !== undefined)
    return because(error.message.replace(/\.$/, ''));
  // A system call failed, such as one that finds the disk full.
  return 'syscall' in error ? because(error.message) : error;
}
