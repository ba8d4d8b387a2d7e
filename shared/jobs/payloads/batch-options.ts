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
/** Names that begin as one of these does, and are another option. */
const OTHERS = ['no-requeue', 'wait-all-nodes', 'clusters-constraint', 'error-on-warning'];
/** One letter for the same options. */
const OWN_LETTERS = ['J', 'o', 'e', 'D'];
const NEVER_LETTERS = ['a', 'W', 'M', 'h', 'V'];
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
  const letters = inScript ? NEVER_LETTERS : [...OWN_LETTERS, ...NEVER_LETTERS];
  for (const option of options) {
    const long = /^--([a-z][a-z0-9-]*)(=|$)/.exec(option)?.[1];
    const short = /^-([A-Za-z])/.exec(option)?.[1];
    if (long === undefined && short === undefined) {
      // In a script the value of an option may be a word of its own.
      if (inScript) continue;
      return `${JSON.stringify(option)} is no option: each begins with a hyphen and holds its value, such as --gres=gpu:1`;
    }
    // getopt_long takes every beginning of a name that fits one name only.
    const isNamed =
      long !== undefined && !OTHERS.includes(long) && names.some(name => name.startsWith(long));
    const isLettered = short !== undefined && letters.includes(short);
    if (isNamed || isLettered) return `${option.split('=')[0]} cannot be set`;
    if (short !== undefined && FLAGS.includes(short) && option.length > 2)
      return `${option} holds several options: give them one by one`;
  }
  return undefined;
}
