import { WindlassError } from '../../shared/errors/errors.ts';
import type { OutputOffsets } from '../../shared/jobs/output.ts';
import type { BatchState } from '../../shared/jobs/payloads/batch.ts';
import { directoryNotFound } from '../runs/directory-not-found.ts';
import type { Failure } from './decide.ts';
import type { PrepareFailure } from './login-node.ts';
import type { ExitRecord } from './submission-state.ts';

export const noEngine = () =>
  new WindlassError('batch_unavailable', {
    detail: 'The host has no batch system that is known here: it has no sbatch.',
    hint: "Have the account's start-up files put it on PATH, or run a command instead.",
  });

export function notPrepared(failure: PrepareFailure, cwd: string | undefined): WindlassError {
  if (failure === 'no_engine') return noEngine();
  if (failure === 'no_cwd') return directoryNotFound(cwd);
  return new WindlassError('remote_disk_full', {
    detail: 'The job was not submitted: ~/.windlass/batch cannot be written.',
    hint: "Free some space in the account's home on the host.",
  });
}

/** `complained` is what the submit command printed. */
export const refused = (complained: string) =>
  new WindlassError('batch_refused', {
    detail: `The batch system did not take the job; nothing ran. ${complained.trim()}`.trim(),
    hint: 'Correct what it names, and submit the job again.',
  });

export const unanswered = () =>
  new WindlassError('batch_refused', {
    detail:
      'The submit command of the batch system did not answer within a minute, several times; nothing ran.',
    hint: 'See on the host whether its controller answers, and submit the job again.',
  });

/** Cancelled before it began, while the batch system does not answer. */
export const maybeQueued = (id: string | null) =>
  new WindlassError('cancelled', {
    detail: `Cancelled. The batch system does not answer: ${id === null ? 'the job' : `job ${id}`} may still be in its queue.`,
    hint: 'When its turn comes nothing runs. Cancel it there, such as by scancel, to take it out of the queue.',
  });

/** Elsewhere a job does not find its fence. */
const SHARE_HOME =
  "See that ~/.windlass/batch is there on the compute nodes, and can be written: the account's home must be that of the login node.";

export const forgotten = (times: number) =>
  new WindlassError('batch_ended', {
    detail: `The job was submitted ${times} times, and at last the batch system forgot it before it had begun; nothing ran.`,
    hint: SHARE_HOME,
  });

export const exceeded = (bytes: number) =>
  new WindlassError('output_limit', {
    detail: `the job wrote more than ${bytes} bytes and was stopped.`,
    hint: 'Write to a file on the host instead. LIMIT_OUTPUT_BYTES sets the limit.',
  });

/** Its files stay on the host, as for every unknown outcome. */
export function cutOutput(end: ExitRecord, taken: OutputOffsets, directory: string): WindlassError {
  const read = Math.min(taken.stdout, end.stdout) + Math.min(taken.stderr, end.stderr);
  return new WindlassError('outcome_unknown', {
    detail: `The job ended with exit status ${end.code}, and ${read} of the ${end.stdout + end.stderr} bytes that it printed can be read.`,
    hint: `Look in ~/.windlass/batch/${directory} on the host, and whether a disk or a quota there is full.`,
  });
}

/** By words of batch systems for a state or a reason. */
const ADVICE: Record<string, string> = {
  BadConstraints: 'Ask for less: no node has all that it asks for.',
  JobLaunchFailure:
    'Look at the paths that it names, such as --input: each must be there on the compute nodes.',
  PREEMPTED: 'Submit it again: it gave its nodes to another job.',
  NODE_FAIL: 'Submit it again: its node failed.',
  BOOT_FAIL: 'Submit it again: its node did not start.',
  CANCELLED: 'Somebody cancelled it there, such as by scancel. Submit it again if it is wanted.',
  TIMEOUT: 'Ask for more time.',
  DEADLINE: 'Ask for a later deadline, or for less time.',
  OUT_OF_MEMORY: 'Ask for more memory.',
};

const adviseOn = (word: string | null) => (word === null ? undefined : ADVICE[word]);

const LOOK_FIRST = 'Look on the host what the job did before you submit it again.';

export function describeFailure(
  why: Exclude<Failure, 'refused'>,
  { id, state, reason }: BatchState,
  isCancelled: boolean,
): WindlassError {
  const named = `job ${id ?? '?'}`;
  const words = [state, reason].filter(word => word !== null).join(', ');
  const ended = words ? `${named} (${words})` : named;
  if (why === 'unbegun')
    return new WindlassError('batch_ended', {
      detail: `The batch system says that ${ended} was over before it had begun; nothing ran.`,
      hint: adviseOn(reason) ?? SHARE_HOME,
    });
  if (why === 'vanished')
    return new WindlassError('batch_ended', {
      detail: `The batch system does not know ${ended} any more, which had not begun; nothing ran.`,
      hint: 'Somebody may have cancelled it there, such as by scancel. Submit it again if it is wanted.',
    });
  if (why === 'restarted')
    return new WindlassError('batch_ended', {
      detail: `The batch system ended ${ended} and started it again, when it ran nothing: what has begun is not run twice.`,
      hint: 'Look at the end of its output, and submit it again.',
    });
  if (why === 'ended')
    return new WindlassError('batch_ended', {
      detail: `The batch system ended ${ended}; it did not end by itself.`,
      hint:
        adviseOn(reason) ??
        adviseOn(state) ??
        'Look at the end of its output; ask for more time or memory where it says so.',
    });
  const what =
    why === 'gone'
      ? `the files of ${named} are gone from ~/.windlass/batch on the host`
      : `the batch system does not know ${named} any more, which had begun and left no record of its end`;
  if (isCancelled)
    return new WindlassError('cancelled', {
      detail: `Cancelled, but ${what}: it may run on.`,
      hint: 'Look on the host.',
    });
  return new WindlassError('outcome_unknown', {
    detail: `${what}.`,
    hint: LOOK_FIRST,
  });
}
