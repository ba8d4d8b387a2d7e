import { type Command, CommanderError } from 'commander';
import { WindlassError } from '../clients/typescript/src/error.ts';
import { describeError } from './client/describe-error.ts';
import { printable } from './client/printable.ts';
import { CommandError, errnoOf } from './command-error.ts';
import { failureStatus } from './exit-status.ts';

/** Runs a program with the words that follow its name. Says in one line what it cannot do, and ends then. */
export async function runProgram(program: Command, words: string[]): Promise<void> {
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    // It has been printed: help, or what is wrong with the arguments.
    if (error instanceof CommanderError)
      process.exit(error.exitCode === 0 ? 0 : failureStatus(words[0]));
    const said = describe(error);
    if (said === undefined) throw error;
    process.stderr.write(`windlass: ${printable(said)}\n`);
    process.exit(failureStatus(words[0]));
  }
}

function describe(error: unknown): string | undefined {
  if (error instanceof WindlassError) return describeError(error);
  if (error instanceof CommandError) return [error.message, error.hint].filter(Boolean).join(' ');
  // Such as `EACCES: permission denied, open '/etc/copied'`.
  if (errnoOf(error) !== undefined && error instanceof Error && 'syscall' in error)
    return `${error.message}.`;
  return undefined;
}
