import type { BatchPhase, BatchRequest } from '../../shared/jobs/payloads/batch.ts';

/** What a batch system says about a job, in its own words; null where it says nothing. */
export interface BatchStatus {
  id: string;
  /** The submission that it is of, as its name or its command says; null if it is of none, or what says so was changed. */
  token: string | null;
  state: string | null;
  reason: string | null;
  nodes: string | null;
  /** Undefined: a state that this engine does not know, of which nothing follows. */
  phase: Exclude<BatchPhase, 'absent'> | undefined;
}

const TOKEN = 'windlass-';
const NAMED_BY_COMMAND = /\/\.windlass\/batch\/([\w-]+)(?:\/job)?(?: |$)/;

/** The name of a submission at its batch system, where nobody else's job has it. */
export const tokenOf = (submission: string) => `${TOKEN}${submission}`;

/** The submission whose name at its batch system this is. */
export const submissionOf = (token: string) => token.slice(TOKEN.length);

/** The token of a job with this name and this command, which has the submission's directory: a site or its user may rename it. */
export function readToken(name: string, command: string): string | null {
  const [, submission] = NAMED_BY_COMMAND.exec(command) ?? [];
  if (submission !== undefined) return tokenOf(submission);
  return name.startsWith(TOKEN) ? name : null;
}

/** An id is believed only with the token of its submission: ids may begin anew if a batch system loses its state. */
export const statusKey = ({ id, token }: Pick<BatchStatus, 'id' | 'token'>) =>
  `${id} ${token ?? ''}`;

/** By statusKey(): to search all of them for each job would take the square of their number. */
export const indexStatuses = (statuses: BatchStatus[] | undefined) =>
  statuses && new Map(statuses.map(status => [statusKey(status), status]));

/** A question for the host: text for its sh, and what the output says. */
export interface Query {
  command: string;
  /** The jobs that it knows, of those asked for; undefined if it did not answer. */
  parse(output: string): BatchStatus[] | undefined;
}

/**
 * One batch system, implemented in a file such as slurm.ts. Its functions make text for a login node's sh and parse
 * what that prints; they do no I/O, so that they are tested without a batch system.
 */
export interface Engine {
  /** A host that has this program has this engine. */
  program: string;
  /**
   * Submits the script `$windlass_dir/job`, with `$windlass_dir` as its argument, under the name `token`, with output
   * to `$windlass_dir/out` and `/err`, to start at most once, by `with_functions`. Prints what parseId() reads.
   */
  submit(token: string, request: Omit<BatchRequest, 'command' | 'script'>): string;
  parseId(output: string): string | undefined;
  /** Asks for all these jobs at once. */
  status(ids: string[]): Query;
  /**
   * Ends the job of this id only if it is of this token; without an id, all of this token. Where the batch system does not
   * answer it prints `unanswered` and what that says.
   */
  cancel(id: string, token: string): string;
  /** The jobs of this token, where nobody knows whether it was submitted; first the one that runs its script. */
  find(token: string): Query;
  /** Whether an error of submit() leaves open if the job was submitted, or may soon be gone. */
  isTransient(errors: string): boolean;
}
