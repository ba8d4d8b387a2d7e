import { printable } from './printable.ts';

/** Prints a line for people on standard error. It may quote text of others. */
export function printNotice(line: string): void {
  process.stderr.write(`windlass: ${printable(line)}\n`);
}
