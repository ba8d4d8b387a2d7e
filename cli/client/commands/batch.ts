import { readFile } from 'node:fs/promises';
import { CommandError, reasonOf } from '../../command-error.ts';
import { connect } from '../connect.ts';
import { decodeText } from '../decode-text.ts';
import { readEnvironment } from '../environment-options.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';
import { followToEnd } from '../follow-to-end.ts';
import { printStarted } from '../print-started.ts';

export interface BatchOptions extends LoginChoice {
  script?: string;
  detach?: boolean;
  cwd?: string;
  env?: string[];
  name?: string;
  nodes?: number;
  tasks?: number;
  cpus?: number;
  memory?: number;
  time?: number;
  queue?: string;
  account?: string;
  option?: string[];
  json?: boolean;
}

/** `windlass batch`: a job of the host's scheduler, followed like a command. Ctrl-C cancels it. */
export async function submitBatch(
  host: string,
  words: string[],
  {
    script: file,
    detach,
    env,
    option: options,
    json,
    user,
    key,
    jumpUser,
    jumpKey,
    ...given
  }: BatchOptions,
): Promise<void> {
  if ((file === undefined) === (words.length === 0))
    throw new CommandError('A batch job is a command or a script.', {
      hint: 'Give the command after the host, or --script FILE.',
    });
  const windlass = await connect();
  const work =
    file === undefined ? { command: words.join(' ') } : { script: await readBatchScript(file) };
  const session = await findOrOpenSession(windlass, host, { user, key, jumpUser, jumpKey });
  const asked = session.batch({ ...given, ...work, env: readEnvironment(env), options });
  if (detach) return printStarted(windlass, asked.job, { json });
  process.exitCode = await followToEnd(windlass, asked.job, { json, cancels: true });
}

async function readBatchScript(file: string): Promise<string> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new CommandError(`The script ${file} cannot be read: ${reasonOf(cause)}.`, {
      hint: 'Check --script.',
      cause,
    });
  });
  return decodeText(bytes, {
    what: `The script ${file}`,
    hint: 'Copy it to the host, and submit a command that runs it.',
  });
}
