import { constants, openSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { ReadStream, WriteStream } from 'node:tty';
import { CommandError } from './command-error.ts';

/**
 * Asks on the controlling terminal, even where the standard streams are none. What is typed is shown if `echo`. Throws
 * CommandError, with `instead` as its hint, where there is no terminal and on Ctrl-D. Ctrl-C ends the process.
 */
export async function ask(
  question: string,
  { echo, instead }: { echo: boolean; instead: string },
): Promise<string> {
  const { input, output } = openTerminal(instead);
  // What readline repeats of the input is not written.
  const hidden = new Writable({ write: (_bytes, _encoding, done) => done() });
  const lines = createInterface({ input, output: echo ? output : hidden, terminal: true });
  const leave = () => {
    lines.close();
    if (!echo) output.write('\n');
    input.destroy();
    output.destroy();
  };
  try {
    // The terminal's echo is off by now, even for people who type at once.
    output.write(question);
    return await new Promise<string>((resolve, reject) => {
      const giveUp = () => reject(new CommandError('Nothing was entered.', { hint: instead }));
      lines.once('line', resolve).once('close', giveUp);
      lines.once('SIGINT', () => {
        lines.off('close', giveUp);
        leave();
        dieOfInterrupt();
      });
    });
  } finally {
    leave();
  }
}

/** As where nobody had made Ctrl-C a character: a shell stops its script for this signal alone. */
function dieOfInterrupt(): void {
  process.removeAllListeners('SIGINT');
  process.kill(process.pid, 'SIGINT');
}

function openTerminal(instead: string): { input: ReadStream; output: WriteStream } {
  try {
    const { O_RDONLY, O_WRONLY, O_NOCTTY } = constants;
    return {
      input: new ReadStream(openSync('/dev/tty', O_RDONLY | O_NOCTTY)),
      output: new WriteStream(openSync('/dev/tty', O_WRONLY | O_NOCTTY)),
    };
  } catch (error) {
    throw new CommandError('There is no terminal to ask on.', { hint: instead, cause: error });
  }
}
