/** Prints a line on standard output, as a command does while it is at work. */
export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
