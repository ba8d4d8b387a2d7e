/** The state of one submission, from its files on the host. */
export interface SubmissionState {
  /** The directory is gone: removed, or of another home. */
  isGone: boolean;
  /** Whether the submit command was called. */
  submit: 'open' | 'called' | 'withdrawn';
  /** Whether the job has begun to run what it is for. */
  start: 'open' | 'begun' | 'revoked';
  /** The batch system has started it once more since, when it ran nothing. */
  wasStartedAgain?: true;
  /** Its own record of its end. */
  end?: ExitRecord;
  /** The submit command's exit status; `overdue` if there is none after a minute or more. */
  answer?: number | 'overdue';
}

export interface ExitRecord {
  /** The exit status of what it ran; `cwd`: its directory is missing on its node, so nothing ran. */
  code: number | 'cwd';
  stdout: number;
  stderr: number;
  /** It was sent the signal by which a batch system ends a job. */
  wasToldToEnd: boolean;
}

/** What the file that a rename has left says, by its name. */
const SUBMIT = new Map<string, SubmissionState['submit']>([
  ['ask', 'open'],
  ['asked', 'called'],
  ['withdrawn', 'withdrawn'],
]);
const AGAIN = 'again';
const START = new Map<string, SubmissionState['start']>([
  ['go', 'open'],
  ['begun', 'begun'],
  [AGAIN, 'begun'],
  ['void', 'revoked'],
]);

/** Reads the lines that `look` in login-node.sh prints, by the name of the submission. */
export function parseStates(answer: string): Map<string, SubmissionState> {
  const submissions = new Map<string, SubmissionState>();
  for (const line of answer.split('\n')) {
    const [, name, there, ask = '', go = '', end = '', code] =
      /^at (\S+) (there|gone) (\S+) (\S+) (\S+) (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    submissions.set(name, {
      isGone: there === 'gone',
      submit: SUBMIT.get(ask) ?? 'called',
      start: START.get(go) ?? 'open',
      ...(go === AGAIN ? { wasStartedAgain: true } : {}),
      ...toEnd(end),
      ...(code === '-' ? {} : { answer: code === 'overdue' ? code : Number(code) }),
    });
  }
  return submissions;
}

function toEnd(record: string): Pick<SubmissionState, 'end'> {
  const [, code = '', stdout, stderr, told] = /^(\d+|cwd)\.(\d+)\.(\d+)(\.t)?$/.exec(record) ?? [];
  if (code === '') return {};
  return {
    end: {
      code: code === 'cwd' ? code : Number(code),
      stdout: Number(stdout),
      stderr: Number(stderr),
      wasToldToEnd: told !== undefined,
    },
  };
}

/** Parses the lines of `measure`: the bytes of both streams, by submission. */
export function parseSizes(answer: string): Map<string, { stdout: number; stderr: number }> {
  const sizes = new Map<string, { stdout: number; stderr: number }>();
  for (const [, bytes, name = '', stream] of answer.matchAll(
    /^bytes +(\d+) .*\/([\w-]+)\/(out|err)$/gm,
  )) {
    const size = sizes.get(name) ?? { stdout: 0, stderr: 0 };
    size[stream === 'out' ? 'stdout' : 'stderr'] = Number(bytes);
    sizes.set(name, size);
  }
  return sizes;
}
