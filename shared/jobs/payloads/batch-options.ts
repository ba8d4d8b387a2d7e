/**
 * Options of sbatch that the service sets itself, or that would change what is submitted: several jobs, another cluster,
 * nothing at all, or an sbatch that waits for the job's end.
 */
const OWN = ['job-name', 'output', 'error', 'requeue', 'chdir'];
const NEVER = [
  'array',
  'wrap',
  'wait',
  'clusters',
  'cluster',
  'test-only',
  'help',
  'usage',
  'version',
];
/** What is to be done instead, where something is. */
const INSTEAD: Record<string, string> = {
  'job-name': 'give `name`, which is shown as its comment',
  output: 'what it prints is stored, and read as the output of the job',
  error: 'what it prints is stored, and read as the output of the job',
  requeue: 'no command may run twice: submit another job',
  chdir: 'give `cwd`',
  array: 'submit several jobs',
  wrap: 'give `command`',
  wait: 'wait for the job here',
  clusters: 'log in to a host of that cluster',
  cluster: 'log in to a host of that cluster',
};
/** Names that begin as one of these does, and are another option. */
const OTHERS = ['no-requeue', 'wait-all-nodes', 'clusters-constraint', 'error-on-warning'];
/** One letter for the same options. */
const OWN_LETTERS: Record<string, string> = { J: 'job-name', o: 'output', e: 'error', D: 'chdir' };
const NEVER_LETTERS: Record<string, string> = {
  a: 'array',
  W: 'wait',
  M: 'clusters',
  h: 'help',
  V: 'version',
};
/** Letters without a value: getopt reads what follows one of them as further options. */
const FLAGS = ['H', 'k', 'O', 'Q', 's', 'v', 'I'];

/**
 * Why these options are refused; undefined where they are not. The lines of a script may set what the service overrides on
 * the command line.
 */
export function findForbidden(
  options: string[],
  { inScript = false }: { inScript?: boolean } = {},
): string | undefined {
  const names = inScript ? NEVER : [...OWN, ...NEVER];
  const letters = inScript ? NEVER_LETTERS : { ...OWN_LETTERS, ...NEVER_LETTERS };
  for (const option of options) {
    const long = /^--([a-z][a-z0-9-]*)(=|$)/.exec(option)?.[1];
    const short = /^-([A-Za-z])/.exec(option)?.[1];
    const isApart = !inScript && /^-[A-Za-z]\s/.test(option);
    if ((long === undefined && short === undefined) || isApart) {
      // In a script the value of an option may be a word of its own.
      if (inScript) continue;
      return `${JSON.stringify(option)} is no option: each begins with a hyphen and holds its value, such as --gres=gpu:1 or -pdebug`;
    }
    // getopt_long takes every beginning of a name that fits one name only.
    const named =
      long !== undefined && !OTHERS.includes(long)
        ? names.find(name => name.startsWith(long))
        : undefined;
    const forbidden = named ?? letters[short ?? ''];
    if (forbidden !== undefined) {
      const instead = INSTEAD[forbidden];
      const said = short === undefined ? `--${long}` : `-${short}`;
      return `${said} cannot be set${instead ? `: ${instead}` : ''}`;
    }
    if (short !== undefined && FLAGS.includes(short) && option.length > 2)
      return `${option} holds several options: give them one by one`;
  }
  return undefined;
}
