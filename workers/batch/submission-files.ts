import { readFileSync } from 'node:fs';
import { type BatchRequest, directiveLines, folderOf } from '../../shared/jobs/payloads/batch.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';

/** The limit of execve for one argument is 128 KiB. */
const MAX_ARGUMENT_BYTES = 131_000;
const JOB = readFileSync(new URL('sh/job.sh', import.meta.url), 'utf8');

/** What the batch system is given: the options of the user's script, and job.sh. */
export const jobFile = ({ script = '' }: BatchRequest): string =>
  ['#!/bin/sh', ...directiveLines(script), JOB].join('\n');

/** What job.sh reads: sets the folder, and defines `run`, whose argument is the directory of the submission. */
export function requestFile(request: BatchRequest): string {
  const { command, script, env = {} } = request;
  const cwd = folderOf(request);
  // By env, not by the shell: to that one a name may be one of its own, or read-only.
  const variables = Object.entries(env).map(([name, value]) => quoteWord(`${name}=${value}`));
  const words = [
    ...(variables.length > 0 ? ['env', ...variables] : []),
    script === undefined
      ? `"$windlass_shell" -c "$windlass_again"${quoteWord(command ?? '')}`
      : `${interpreterOf(script).map(quoteWord).join(' ')} "$1/script"`,
  ];
  return [
    `windlass_cwd=${cwd === undefined ? '$HOME' : quoteWord(cwd)}`,
    setAgain(env, command ?? ''),
    `run() { exec ${words.join(' ')}; }`,
    '',
  ].join('\n');
}

/** What the first line names, with one argument, as a kernel reads it. The home may be on a disk from which nothing is executed. */
function interpreterOf(script: string): string[] {
  const [, program, argument] = /^#![ \t]*(\S+)[ \t]*(.*)/.exec(script) ?? [];
  if (program === undefined) return ['/bin/sh'];
  return argument ? [program, argument.trimEnd()] : [program];
}

/**
 * Sets windlass_again, what bash is to do before the command: under SSH, whose variables the job has, Debian's and Red Hat's read
 * .bashrc for each `-c`, which may set what the request has set. Nothing for other shells, and where one argument does not hold it.
 */
function setAgain(env: Record<string, string>, command: string): string {
  const words = Object.entries(env).map(([name, value]) => `export ${name}=${quoteWord(value)}`);
  // Some are read-only to bash, which says so.
  const again = words.length > 0 ? `{ ${words.join('; ')}; } 2>/dev/null; ` : '';
  if (again === '' || Buffer.byteLength(again + command) > MAX_ARGUMENT_BYTES)
    return "windlass_again=''";
  return `case $windlass_shell in */bash) windlass_again=${quoteWord(again)} ;; *) windlass_again='' ;; esac`;
}
