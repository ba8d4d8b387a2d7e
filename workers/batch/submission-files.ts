import { readFileSync } from 'node:fs';
import { type BatchRequest, directiveLines, folderOf } from '../../shared/jobs/payloads/batch.ts';
import { KEEP_FUNCTIONS, NO_FUNCTIONS } from '../host-agent/no-functions.ts';
import { passVariables } from '../host-agent/pass-variables.ts';
import { quoteFolder, quoteWord } from '../host-agent/shell-quote.ts';

const JOB = readFileSync(new URL('sh/job.sh', import.meta.url), 'utf8');

/** What the batch system is given: the options of the user's script, and job.sh. */
export const jobFile = ({ script = '' }: BatchRequest): string =>
  ['#!/bin/sh', ...directiveLines(script), KEEP_FUNCTIONS, NO_FUNCTIONS, JOB].join('\n');

/**
 * What job.sh reads: sets the directory and defines `run`, whose argument is the submission's directory. Reading
 * empties this file and that of the variables, because their removal is not certain.
 */
export function requestFile(request: BatchRequest): string {
  const { command, script, env = {} } = request;
  const cwd = folderOf(request);
  const { before, words } = passVariables(env);
  const program =
    script === undefined
      ? `"$windlass_shell" -c "$windlass_again"${quoteWord(command ?? '')}`
      : `${interpreterOf(script).map(quoteWord).join(' ')} "$1/script"`;
  const needsAgain = script === undefined && Object.keys(env).length > 0;
  return [
    `windlass_cwd=${quoteFolder(cwd ?? '~')}`,
    'windlass_again=',
    'run() {',
    EMPTY_REQUEST,
    ...(needsAgain ? [SET_AGAIN] : []),
    ...before,
    'eval "$windlass_functions"',
    ['exec', ...words, program].join(' '),
    '}',
    '',
  ].join('\n');
}

const EMPTY_REQUEST = '{ true >"$1/request"; } 2>/dev/null';

/**
 * Makes bash set the variables again before the command: under SSH, Debian's and Red Hat's bash reads .bashrc for each
 * `-c`, which may override them. From a file, because every account can read arguments.
 */
const SET_AGAIN = `case $windlass_shell in
*/bash)
  export windlass_variables="$1/variables"
  windlass_again='{ . "$windlass_variables"; true >| "$windlass_variables"; unset windlass_variables; } 2>/dev/null; '
  ;;
*) { true >"$1/variables"; } 2>/dev/null ;;
esac`;

/** What bash sources before a command. It complains about variables that are read-only to it. */
export const variablesFile = ({ script, env = {} }: BatchRequest): string =>
  script === undefined
    ? Object.entries(env)
        .map(([name, value]) => `export ${name}=${quoteWord(value)}\n`)
        .join('')
    : '';

/**
 * The interpreter of the script's first line, with one argument, as a kernel reads it: the home may be mounted noexec.
 */
function interpreterOf(script: string): string[] {
  const [, program, argument] = /^#![ \t]*(\S+)[ \t]*(.*)/.exec(script) ?? [];
  if (program === undefined) return ['/bin/sh'];
  return argument ? [program, argument.trimEnd()] : [program];
}
