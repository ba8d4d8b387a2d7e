import { CommanderError } from 'commander';
import { WindlassError } from '../clients/typescript/src/error.ts';
import { describeError } from './client/describe-error.ts';
import { CommandError } from './command-error.ts';
import { failureStatus } from './exit-status.ts';
import { createProgram } from './program.ts';

const words = process.argv.slice(2);
try {
  await createProgram().parseAsync(words.length === 0 ? ['up'] : words, { from: 'user' });
} catch (error) {
  // It has been printed: help, or what is wrong with the arguments.
  if (error instanceof CommanderError)
    process.exit(error.exitCode === 0 ? 0 : failureStatus(words[0]));
  const said = describe(error);
  if (said === undefined) throw error;
  process.stderr.write(`windlass: ${said}\n`);
  process.exit(failureStatus(words[0]));
}

function describe(error: unknown): string | undefined {
  if (error instanceof WindlassError) return describeError(error);
  if (error instanceof CommandError) return [error.message, error.hint].filter(Boolean).join(' ');
  return undefined;
}
