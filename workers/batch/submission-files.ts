import { readFileSync } from 'node:fs';
import { type BatchRequest, directiveLines, folderOf } from '../../shared/jobs/batch.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { setAgain } from '../runs/exported-again.ts';

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
    setAgain('$windlass_shell', env, command ?? ''),
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
