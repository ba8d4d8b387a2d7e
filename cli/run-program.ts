import { type Command, CommanderError } from 'commander';
import { failureStatus } from './exit-status.ts';
import { describe } from './output/describe-error.ts';
import { watchOutput } from './output/lost-output.ts';
import { printFault } from './output/print-fault.ts';
import { printNotice } from './output/print-notice.ts';

/** Runs a program with the words that follow its name. Ends with one line for a failure. */
export async function runProgram(program: Command, words: string[]): Promise<void> {
  watchOutput(failureStatus(words[0]));
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    // It has been printed: help, or what is wrong with the arguments.
    if (error instanceof CommanderError)
      process.exit(error.exitCode === 0 ? 0 : failureStatus(words[0]));
    const said = describe(error);
    if (said === undefined) printFault(error);
    else printNotice(said);
    process.exit(failureStatus(words[0]));
  }
}
