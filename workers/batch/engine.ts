import type { BatchPhase, BatchRequest } from '../../shared/jobs/payloads/batch.ts';

/** What a batch system says of a job, in its own words; null where it says nothing. */
export interface BatchStatus {
  id: string;
  /** The name that the job was submitted with. Ids may begin anew where a batch system lost its state. */
  token: string;
  state: string | null;
  reason: string | null;
  nodes: string | null;
  /** Undefined: a state that this engine does not know, of which nothing follows. */
  phase: Exclude<BatchPhase, 'absent'> | undefined;
}

/** A question for the host: text for its sh, and what the output says. */
export interface Query {
  command: string;
  /** The jobs that it knows of those that were asked for; undefined where it did not answer. */
  parse(output: string): BatchStatus[] | undefined;
}

/**
 * One batch system. Its functions make text for the sh of a login node and read what that prints; they ask nobody, and so are
 * tested without one. Another batch system is another file such as slurm.ts.
 */
export interface Engine {
  /** A host that has this program has this engine. */
  program: string;
  /**
   * Submits the script `$windlass_dir/job`, with `$windlass_dir` as its argument, as a job that is named `token`, writes to `$windlass_dir/out` and
   * `$windlass_dir/err`, and is started at most once. Prints what parseId() reads.
   */
  submit(token: string, request: Omit<BatchRequest, 'command' | 'script'>): string;
  parseId(output: string): string | undefined;
  /** One question for all of these. */
  status(ids: string[]): Query;
  /** Ends the job of this id only if it has this name. */
  cancel(id: string, token: string): string;
  /** The jobs of this name, where nobody knows whether it was submitted. */
  find(token: string): Query;
  /** Whether an error of submit() leaves open what became of the submission, or may be gone a little later. */
  isTransient(errors: string): boolean;
}
