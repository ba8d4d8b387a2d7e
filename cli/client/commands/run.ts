import { CommandError } from '../../command-error.ts';
import { printNotice } from '../../output/print-notice.ts';
import { connect } from '../connect.ts';
import { decodeText } from '../decode-text.ts';
import { readEnvironment } from '../environment-options.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';
import { followToEnd } from '../follow-to-end.ts';
import { printStarted } from '../print-started.ts';

export interface RunOptions extends LoginChoice {
  detach?: boolean;
  cwd?: string;
  env?: string[];
  timeout?: number;
  name?: string;
  /** False by --no-stdin. */
  stdin: boolean;
  json?: boolean;
}

/** Bytes of standard input that a command may be given. */
const MAX_STDIN = 1 << 20;

/** `windlass run`: lives like ssh. */
export async function run(host: string, words: string[], options: RunOptions): Promise<void> {
  const command = joinCommand(host, words);
  const windlass = await connect();
  const env = readEnvironment(options.env);
  const stdin = options.stdin && !process.stdin.isTTY ? await readStandardInput() : undefined;
  const session = await findOrOpenSession(windlass, host, options);
  const { cwd, timeout, name } = options;
  const asked = session.run(command, { cwd, env, timeout, name, stdin });
  if (options.detach) return printStarted(windlass, asked.job, options);
  process.exitCode = await followToEnd(windlass, asked.job, { ...options, cancels: true });
}

/** The words are one line for the shell of the account, as with ssh. */
function joinCommand(host: string, words: string[]): string {
  const command = words.join(' ');
  if (command.trim()) return command;
  throw new CommandError('The command is empty.', {
    hint: `Give it after the host: windlass run ${host} -- uname -a.`,
  });
}

/** How long somebody waits for the first byte before they are told what for. */
const SILENT_MS = 2_000;

async function readStandardInput(): Promise<string | undefined> {
  const timer = setTimeout(() => {
    printNotice('this waits for the end of standard input. Add -n if there is none.');
  }, SILENT_MS);
  try {
    return await readAll(timer);
  } finally {
    clearTimeout(timer);
  }
}

async function readAll(timer: NodeJS.Timeout): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    clearTimeout(timer);
    length += piece.length;
    if (length > MAX_STDIN)
      throw new CommandError('Standard input is larger than 1 MiB.', {
        hint: 'Copy it to the host as a file, and read that.',
      });
    pieces.push(piece);
  }
  if (length === 0) return undefined;
  return decodeText(Buffer.concat(pieces), {
    what: 'Standard input',
    hint: 'Copy it to the host as a file, and read that.',
  });
}
