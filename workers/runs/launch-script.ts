import type { Payload } from '../../shared/jobs/catalog.ts';
import { passVariables } from '../host-agent/pass-variables.ts';
import { quoteFolder, quoteWord } from '../host-agent/shell-quote.ts';
import { type CommandDefaults, withSessionEnv } from '../ssh/command-defaults.ts';
import type { RunScript } from './run-on-host.ts';

/** The shell that reads the script below itself: others drop the functions that it exports. */
const EXPORTS_FUNCTIONS = /\/bash$/;
/**
 * The script's exit status if it cannot enter the directory. A line on stderr, with the run's id, tells it from the
 * command's own.
 */
export const NO_DIRECTORY = 113;

type Launch = Payload<'command'>;

/** Whether a command asks for more than to be run as it is. */
export const isPlain = ({ cwd, env, stdin }: Launch) =>
  cwd === undefined && stdin === undefined && Object.keys(env ?? {}).length === 0;

/**
 * A script for sh that runs the command by the account's shell, in its directory, with its variables and input. Its
 * arguments are options of that shell. Input and variables never become arguments, which every account can read.
 */
export function launchScript(launch: Launch, id: string): string {
  const { command, cwd, env = {}, stdin } = launch;
  const lines: string[] = [];
  if (cwd !== undefined)
    lines.push(
      `command cd -- ${quoteFolder(cwd)} || { command echo ${quoteWord(noDirectoryLine(id))} >&3; exit ${NO_DIRECTORY}; }`,
    );
  const { before, words } = passVariables(env);
  const run = ['exec', ...words, '"$SHELL" "$@" -c', quoteWord(command)].join(' ');
  lines.push(
    ...before,
    stdin === undefined
      ? `${run} </dev/null 2>&3 3>&-`
      : // The shell that waits must survive what the command sends to its process group.
        `trap : HUP INT TERM\ncommand printf '%s' ${quoteWord(stdin)} | ${run} 2>&3 3>&-`,
  );
  return lines.join('\n');
}

/**
 * The shell reads all of the script before it runs it, and says nothing: it would name a command that a signal ends, with
 * its input. The command's stderr is 3 meanwhile.
 */
export const silently = (script: string) => `exec 3>&2 2>/dev/null\n{\n${script}\n}\n`;

/** Where sshd starts a command; OLDPWD is not in the login's environment. */
const AT_HOME = 'CDPATH= command cd || command cd /\nunset OLDPWD\n';

/** The agent keeps it from the bash that reads the script. */
const GIVE_BASH_ENV = `case \${WINDLASS_BASH_ENV+y} in y)
export BASH_ENV="$WINDLASS_BASH_ENV"
unset WINDLASS_BASH_ENV
;; esac
`;

/** What an agent is asked to run. `shell` is the account's. */
export function toRunScript(
  given: Launch,
  id: string,
  { shell, defaults }: { shell: string; defaults: CommandDefaults },
): RunScript {
  const launch = withSessionEnv(given, defaults);
  if (defaults.startup === 'each')
    return { script: leaveNoFile(AT_HOME + launchScript(launch, id)), reader: 'login' };
  if (isPlain(launch)) return { command: launch.command };
  const script = launchScript(launch, id);
  return EXPORTS_FUNCTIONS.test(shell)
    ? { script: leaveNoFile(GIVE_BASH_ENV + script), reader: 'account' }
    : { script: leaveNoFile(script), reader: 'sh' };
}

/** The script empties its own file first: the shell has read all of it by then. */
const leaveNoFile = (script: string) => silently(`command true >|"$0"\n${script}`);

/** The previous release's workers compare what a run said with the same words. */
const noDirectoryLine = (id: string) => `windlass: ${id}: cannot enter the folder`;

/** What the script writes to stderr if it cannot enter the directory, with exit status NO_DIRECTORY. */
export const noDirectoryOutput = (id: string) => `${noDirectoryLine(id)}\n`;
