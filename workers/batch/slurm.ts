import { quoteWord } from '../host-agent/shell-quote.ts';
import { harmless } from '../ssh/host-words.ts';
import { type BatchStatus, type Engine, type Query, readToken, statusKey } from './engine.ts';

/** https://slurm.schedmd.com/job_state_codes.html. A state that is missing here says nothing about the job. */
const PHASES: Record<string, BatchStatus['phase']> = {
  PENDING: 'pending',
  CONFIGURING: 'pending',
  REQUEUED: 'pending',
  REQUEUE_FED: 'pending',
  REQUEUE_HOLD: 'pending',
  RESV_DEL_HOLD: 'pending',
  SPECIAL_EXIT: 'pending',
  RUNNING: 'running',
  COMPLETING: 'running',
  RESIZING: 'running',
  SIGNALING: 'running',
  STAGE_OUT: 'running',
  STOPPED: 'running',
  SUSPENDED: 'running',
  COMPLETED: 'ended',
  FAILED: 'ended',
  BOOT_FAIL: 'stopped',
  CANCELLED: 'stopped',
  DEADLINE: 'stopped',
  LAUNCH_FAILED: 'stopped',
  NODE_FAIL: 'stopped',
  OUT_OF_MEMORY: 'stopped',
  PREEMPTED: 'stopped',
  RECONFIG_FAIL: 'stopped',
  REVOKED: 'stopped',
  TIMEOUT: 'stopped',
};

/** Variables of the account that would limit queries and cancels to some jobs. */
const UNASKED = [
  'SLURM_CLUSTERS',
  ...['ACCOUNT', 'CLUSTERS', 'LICENSES', 'NAMES', 'PARTITION', 'QOS', 'STATES', 'USERS'].map(
    name => `SQUEUE_${name}`,
  ),
  ...[
    'ACCOUNT',
    'NAME',
    'PARTITION',
    'QOS',
    'RESERVATION',
    'STATE',
    'USER',
    'WCKEY',
    'INTERACTIVE',
  ].map(name => `SCANCEL_${name}`),
].join(' ');
/** Variables of the account that would submit something else; the command line overrides all others. */
const UNSET = 'SBATCH_ARRAY_INX SBATCH_WAIT SBATCH_CLUSTERS SBATCH_WRAP SLURM_CLUSTERS';
const FORMAT = '%A|%T|%r|%N|%j|%o';
const OWN = '--user="$(id -un)"';
/** squeue's answer where it knows none of the ids that it was asked for, which is an answer. */
const UNKNOWN_ID = 'Invalid job id specified';
/** Prints those of `ids` that begin no line of its input. */
const FIND_MISSING = `awk -F'|' 'NF > 1 { known[$1] = 1 }
END { n = split(ids, all, ","); for (i = 1; i <= n; i++) if (!(all[i] in known)) printf "%s,", all[i] }'`;
const ANSWERED = 'answered';
const ACCOUNTED = 'accounted ';

export const slurm: Engine = {
  program: 'sbatch',

  submit(token, { name, nodes, tasks, cpus, memory, time, queue, account, options = [] }) {
    // The last one of a repeated option counts.
    const words = [
      ...options,
      ...(name === undefined ? [] : [`--comment=${name}`]),
      ...(nodes === undefined ? [] : [`--nodes=${nodes}`]),
      ...(tasks === undefined ? [] : [`--ntasks=${tasks}`]),
      ...(cpus === undefined ? [] : [`--cpus-per-task=${cpus}`]),
      ...(memory === undefined ? [] : [`--mem=${Math.ceil(memory / 1024)}K`]),
      ...(time === undefined ? [] : [`--time=${Math.floor(time / 60)}:${time % 60}`]),
      ...(queue === undefined ? [] : [`--partition=${queue}`]),
      ...(account === undefined ? [] : [`--account=${account}`]),
      `--job-name=${token}`,
      '--parsable',
      '--no-requeue',
      '--open-mode=append',
    ].map(quoteWord);
    // In a file's name `%` begins a pattern.
    const pattern = `$(printf %s "$windlass_dir" | sed 's/%/%%/g')`;
    // --chdir, so that a relative --input is found; submit() runs in the job's directory.
    const own = `--chdir="$PWD" --output="${pattern}/out" --error="${pattern}/err"`;
    return `unset ${UNSET}; with_functions sbatch ${words.join(' ')} ${own} "$windlass_dir/job" "$windlass_dir"`;
  },

  /** `ID`, or `ID;CLUSTER`. What a site prints around it may be a number, too. */
  parseId: output =>
    [...output.matchAll(/^(\d{1,20})(?:;\S+)?$/gm)].map(([, id = '']) => id).findLast(isId),

  /**
   * squeue knows jobs that have not ended, or ended within MinJobAge. sacct is asked for the others only, because a
   * query for each waiting job would overload its database. One pass finds them: a search for each of thousands took
   * many seconds of a login node. squeue tells of none if it refuses one id, which may be any number that a site prints:
   * then it tells of all jobs of the account, and so it does where some are to be found by their names.
   */
  status(ids, tokens) {
    const list = ids.filter(isId).join(',');
    const isSearch = tokens.length > 0;
    if (list === '' && !isSearch) return query([`echo ${ANSWERED}`]);
    const found = isSearch
      ? [`found=$(${queue()} 2>&1); code=$?`]
      : [
          `found=$(${queue(`--jobs=${list}`)} 2>&1); code=$?`,
          `case $found in *'${UNKNOWN_ID}'*) ;; *'Invalid job id'*) found=$(${queue()} 2>&1); code=$? ;; esac`,
        ];
    return query([
      ...found,
      `printf '%s\\n' "$found"`,
      `case $code,$found in 0,* | *'${UNKNOWN_ID}'*) echo ${ANSWERED} ;; esac`,
      `missing=$(printf '%s\\n' "$found" | ${FIND_MISSING} ids=${list} -) || missing=${list}`,
      `if [ -n "$missing" ] && command -v sacct >/dev/null; then ${account('--jobs="$missing"')}; fi`,
      ...(isSearch ? [`if command -v sacct >/dev/null; then ${accountOf(tokens)}; fi`] : []),
    ]);
  },

  cancel: ids =>
    `(unset ${UNASKED}; scancel ${OWN} ${ids.filter(isId).join(' ')} >/dev/null 2>&1 </dev/null)`,

  /** Not "unspecified error": sbatch says so after whatever a site's own plug-in has refused. */
  isTransient: errors =>
    /unable to contact|timed out|time out|connection (refused|reset)|zero bytes|temporarily una|protocol authentication|munge|communication/i.test(
      errors,
    ),
};

/** Slurm counts from 1, and the last two numbers of 32 bits mean none and all. */
const isId = (word: string) => /^[1-9]\d{0,9}$/.test(word) && Number(word) < 2 ** 32 - 2;

/** Jobs of the account, which have not ended or did so within MinJobAge; all, or those of some ids. */
const queue = (which = '') => `squeue --noheader --states=all ${OWN} ${which} --format='${FORMAT}'`;

/** `CANCELLED by 1000` is a state and who cancelled; the reason is that of the wait. It tells no command. */
const account = (which: string) =>
  `sacct --noheader --parsable2 --allocations --duplicates ${OWN} ${which} --format=JobIDRaw,State,Reason,NodeList,JobName 2>/dev/null | sed 's/^/${ACCOUNTED}/; s/$/|/'`;

/** No argument of a program may have more than 128 KiB. */
const MAX_NAMES = 1_000;

/** Those of these names, in queries of so many. */
function accountOf(tokens: readonly string[]): string {
  const queries: string[] = [];
  for (let at = 0; at < tokens.length; at += MAX_NAMES) {
    const names = tokens.slice(at, at + MAX_NAMES).join(',');
    queries.push(account(`--name=${quoteWord(names)} --starttime=now-30days`));
  }
  return queries.join('; ');
}

/** Each part ends where only the next one can begin, so that no line of a host takes longer than its length. */
const STATUS =
  /^(?:accounted )?(\d{1,20})\|([A-Z_]{1,64})(?:[^A-Z_|][^|]*)?\|(.*)\|([^|]*)\|([^|]*)\|([^|]*)$/;

/** The query is asked in a shell of its own. */
const query = (lines: string[]): Query => ({
  command: `unset ${UNASKED}\n${lines.join('\n')}\n`,
  parse,
});

function parse(output: string): BatchStatus[] | undefined {
  const lines = output.split('\n');
  if (!lines.includes(ANSWERED) && !output.includes(UNKNOWN_ID)) return undefined;
  const found = new Map<string, BatchStatus>();
  for (const line of lines) {
    const fields = STATUS.exec(line);
    if (!fields) continue;
    const [, id = '', state = '', reason = '', nodes = '', name = '', command = ''] = fields;
    const token = readToken(name, command);
    const phase = PHASES[state];
    // sacct reports a job that the controller has forgotten as running for ever, and keeps what had its id before.
    const isOver = phase === 'ended' || phase === 'stopped';
    const isForgotten = line.startsWith(ACCOUNTED) && (!isOver || token === null);
    // What squeue says comes first: it is newer.
    const key = statusKey({ id, token });
    if (isForgotten || found.has(key)) continue;
    found.set(key, {
      id,
      token,
      state,
      phase,
      reason: orNull(reason),
      nodes: orNull(nodes),
    });
  }
  return [...found.values()];
}

const orNull = (word: string) =>
  ['', 'None', '(null)', 'None assigned'].includes(word) ? null : harmless(word.slice(0, 500));
