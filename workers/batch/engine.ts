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

/** The token of a job with this name and this command, which has the submission's directory: a site or its user may rename it. */
export function readToken(name: string, command: string): string | null {
  const [, submission] = NAMED_BY_COMMAND.exec(command) ?? [];
  if (submission !== undefined) return tokenOf(submission);
  return name.startsWith(TOKEN) ? name : null;
}

/** An id is believed only with the token of its submission: ids may begin anew if a batch system loses its state. */
export const statusKey = ({ id, token }: Pick<BatchStatus, 'id' | 'token'>) =>
  `${id} ${token ?? ''}`;

/** What a batch system told, by key: to search all of it for each job would take the square of their number. */
export class Statuses {
  readonly #byKey: ReadonlyMap<string, BatchStatus>;
  readonly #byToken = new Map<string, BatchStatus[]>();

  constructor(statuses: readonly BatchStatus[]) {
    this.#byKey = new Map(statuses.map(status => [statusKey(status), status]));
    for (const status of statuses) {
      const { token } = status;
      if (token !== null) this.#byToken.set(token, [...this.of(token), status]);
    }
  }

  find(key: Pick<BatchStatus, 'id' | 'token'>): BatchStatus | undefined {
    return this.#byKey.get(statusKey(key));
  }

  /** All that have this token. */
  of(token: string): readonly BatchStatus[] {
    return this.#byToken.get(token) ?? [];
  }

  /**
   * The one of them that runs the script. The parts of a heterogeneous job have the same token, in any order: the one of
   * the lowest id runs the script, and the others end with it.
   */
  leader(token: string): BatchStatus | undefined {
    const all = this.of(token).toSorted((one, other) => Number(one.id) - Number(other.id));
    return all.find(({ phase }) => phase === 'running') ?? all[0];
  }
}

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
  /** Asks at once for all jobs of these ids, and of these tokens, of which nobody knows whether they were submitted. */
  status(ids: string[], tokens: string[]): Query;
  /** Ends these jobs of the account, which its batch system has just told of. */
  cancel(ids: string[]): string;
  /** Whether an error of submit() leaves open if the job was submitted, or may soon be gone. */
  isTransient(errors: string): boolean;
}
