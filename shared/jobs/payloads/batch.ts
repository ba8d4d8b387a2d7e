import { z } from 'zod';
import { findForbidden } from './batch-options.ts';
import { hostText } from './host-text.ts';
import { beginsAtHome, commandText } from './launch.ts';

/** The batch systems that Windlass can submit to: workers/batch/(name).ts. */
export const ENGINES = ['slurm'] as const;
export type EngineName = (typeof ENGINES)[number];

const word = z
  .string()
  .max(200)
  .regex(/^[\w.,:@+-]+$/, 'must consist of letters, digits and . , : @ + - _');
const whole = z.number().int().min(1);
const ENV_BYTES = 65_536;
const SCRIPT_BYTES = 1 << 20;

/** What a batch job asks its batch system for. */
export const batchPayload = z.object({
  /** A line for the account's own shell. */
  command: z.string().optional(),
  /** A file of its own, run by the interpreter that its first line names. */
  script: z.string().optional(),
  /** The client's own, shown as the comment of the job there. */
  name: z.string().optional(),
  /** Below the account's home, where it begins with `~/`. */
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  nodes: z.number().int().optional(),
  tasks: z.number().int().optional(),
  /** For each task. */
  cpus: z.number().int().optional(),
  /** Bytes, on each node. */
  memory: z.number().int().optional(),
  /** Seconds. */
  time: z.number().int().optional(),
  queue: z.string().optional(),
  account: z.string().optional(),
  /** Further options of the batch system's own, such as `--gres=gpu:1`. */
  options: z.array(z.string()).optional(),
});
export type BatchRequest = z.output<typeof batchPayload>;

/** `~/` in `cwd` needs version 3: older workers refuse it. */
export const batchVersion = ({ cwd }: BatchRequest) =>
  cwd !== undefined && beginsAtHome(cwd) ? 3 : 2;

/** Rules for what is sent. */
export const batchRules = {
  command: commandText
    .refine(
      line => !/^[ \t]*#SBATCH/m.test(line),
      'has #SBATCH lines, which only a `script` may have: begin it with #! and give it as one',
    )
    .optional(),
  script: hostText({ bytes: { most: SCRIPT_BYTES, problem: 'must be at most 1 MiB long' } })
    .min(1)
    .refine(
      value => !value.startsWith('\ufeff'),
      'must not begin with a byte order mark, which hides its #!: save it without',
    )
    .refine(
      value => /^\ufeff?#!/.test(value),
      'must begin with #! and its interpreter, such as #!/bin/bash',
    )
    .refine(
      value => !value.includes('\r\n'),
      'must not have line ends of DOS (CR LF), which no shell takes: convert it by dos2unix',
    )
    .superRefine((script, context) => {
      const words = readDirectives(script);
      const problem = findForbidden(words, { inScript: true });
      if (problem) context.addIssue({ code: 'custom', message: `#SBATCH: ${problem}` });
      const isAbsolute = readFolder(words)?.startsWith('/') ?? true;
      if (!isAbsolute)
        context.addIssue({ code: 'custom', message: '#SBATCH: --chdir must be an absolute path' });
    })
    .optional(),
  cwd: hostText({ max: 4096 })
    .regex(/^(\/|~(\/|$))/, 'must be an absolute path, or begin with ~/')
    .optional(),
  env: z
    .record(z.string().regex(/^[A-Za-z_]\w*$/, 'must be a name of a variable'), hostText())
    .refine(
      env => Buffer.byteLength(Object.entries(env).flat().join('')) <= ENV_BYTES,
      'must be at most 64 KiB long',
    )
    .optional(),
  nodes: whole.max(100_000).optional(),
  tasks: whole.max(10_000_000).optional(),
  cpus: whole.max(100_000).optional(),
  memory: whole.max(2 ** 50).optional(),
  time: whole.max(366 * 86_400).optional(),
  queue: word.optional(),
  account: word.optional(),
  options: z
    .array(hostText({ max: 1_000 }))
    .max(100)
    .superRefine((options, context) => {
      const problem = findForbidden(options);
      if (problem) context.addIssue({ code: 'custom', message: problem });
    })
    .optional(),
};

/** What a job's record says of its batch job, in the batch system's own words; null is unknown. */
export const batchRecord = z
  .object({
    engine: z.string(),
    id: z.string().nullable(),
    state: z.string().nullable(),
    reason: z.string().nullable(),
    nodes: z.string().nullable(),
  })
  .meta({ id: 'BatchJob' });

/** Where a batch job stands: what its record says, and what the workers remember of it. */
export interface BatchState extends z.output<typeof batchRecord> {
  engine: EngineName;
  /**
   * What its batch system last said: `stopped` ended it from outside, `absent` does not know it. Undefined: nothing that is
   * understood.
   */
  phase?: BatchPhase;
  /** Successive answers by which it is over or absent. A file of its node may appear later than these. */
  overFor: number;
  /** When the first of these came: ISO 8601, by the clock of a worker. */
  overSince?: string;
  /** When its record of its end was first seen: its batch system is asked how it ended. */
  endSince?: string;
  /** Since when its record of the end states more output than has come; whatever its batch system says meanwhile. */
  lateSince?: string;
  /** What it says in place of an answer, since it was last asked. */
  unanswered?: string;
  /** No id is known to be its: polls look for it by its name. `none`: the last one found none. */
  search?: 'due' | 'none';
  /** Polls end it there. */
  isUnwanted?: true;
  /** Directories that were made for it on the host, each to be submitted once. */
  submissions?: number;
}

export type BatchPhase = 'pending' | 'running' | 'ended' | 'stopped' | 'absent';

/** The lines of options at the beginning of a script, before its first command. */
export function directiveLines(script: string): string[] {
  const lines = script.split('\n');
  const body = lines.findIndex(line => !/^\s*(#|$)/.test(line));
  return lines.slice(0, body < 0 ? undefined : body).filter(line => line.startsWith('#SBATCH'));
}

/** What stands before a comment, which begins with a `#` outside of quotes, also within a word. */
const BEFORE_COMMENT = /^(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|[^"'\\#])*/s;

/**
 * The words of these lines, as sbatch reads them: quotes keep blanks, a backslash keeps what follows it, also within quotes,
 * but no blank outside of them. It refuses a line with a quote that nothing ends.
 */
function readDirectives(script: string): string[] {
  return directiveLines(script).flatMap(line => {
    const [options = ''] = BEFORE_COMMENT.exec(line.slice('#SBATCH'.length)) ?? [];
    const words = options.match(/(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\\S|[^\s"'\\])+/gs);
    return words?.map(unquote) ?? [];
  });
}

const unquote = (word: string) =>
  word.replace(
    /"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|\\(.)/gs,
    (_, double = '', single = '', kept = '') =>
      `${double}${single}`.replace(/\\(.)/gs, '$1') + kept,
  );

/** The folder that a job runs in, of its own or as its script's `--chdir` says; undefined: the home. */
export function folderOf({ cwd, script = '' }: Pick<BatchRequest, 'cwd' | 'script'>) {
  return cwd ?? readFolder(readDirectives(script));
}

function readFolder(words: string[]): string | undefined {
  return words.reduce<string | undefined>((folder, word, index) => {
    const [, ofLong, ofShort] = /^--chd(?:i|ir)?(?:=(.*))?$|^-D(.*)$/s.exec(word) ?? [];
    if (ofLong === undefined && ofShort === undefined && !/^--chd(i|ir)?$/.test(word))
      return folder;
    return ofLong || ofShort || words[index + 1];
  }, undefined);
}
