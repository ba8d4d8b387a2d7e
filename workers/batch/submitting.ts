import type { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import {
  type BatchState,
  ENGINES,
  type EngineName,
  folderOf,
} from '../../shared/jobs/payloads/batch.ts';
import { submissionIntended, submissionMade } from '../../shared/jobs/run-intent.ts';
import type { JobContext } from '../context.ts';
import { ANSWER_SECONDS, UnfinishedProgram } from '../ssh/ask-host.ts';
import { withSessionEnv } from '../ssh/command-defaults.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import type { Unbegun } from './decide.ts';
import { ENGINE } from './engines.ts';
import { forgotten, maybeQueued, noEngine, notPrepared, refused, unanswered } from './errors.ts';
import type { LoginNode } from './login-node.ts';
import { ASK_AGAIN_SECONDS, LOOK_AGAIN_SECONDS, nextAttempt } from './next-attempt.ts';
import { followHost } from './polls.ts';
import { look, type RecordedSubmission, record, type Submission } from './submission.ts';

/**
 * Limit of submissions for a job that the batch system does not take, or forgets before it begins, for passing reasons.
 */
const MAX_SUBMISSIONS = 12;

/** The steps that have the batch system take the job once. Each returns the submission as it then is. */
export class Submitting {
  readonly #context: JobContext<'batch'>;
  readonly #session: RemoteSession;
  readonly #node: LoginNode;

  constructor(context: JobContext<'batch'>, session: RemoteSession, node: LoginNode) {
    this.#context = context;
    this.#session = session;
    this.#node = node;
  }

  /**
   * Makes a directory on the host and records it: only a recorded one is submitted, by the worker that holds the job.
   * `earlier` is what was known of the submission that this one follows. What was submitted and lost its record in a failover of
   * the database is recorded again.
   */
  async prepare(earlier?: BatchState): Promise<RecordedSubmission> {
    const payload = withSessionEnv(this.#context.payload, this.#session.defaults);
    const engine = earlier?.engine ?? (await this.#chooseEngine());
    await this.#announce();
    const name = `${this.#context.job.id}-${newId().slice(-8)}`;
    const prepared = await this.#node.prepare(name, payload, engine);
    if ('failure' in prepared) throw notPrepared(prepared.failure, folderOf(payload));
    const { directory } = prepared;
    const batch: BatchState = {
      engine,
      id: null,
      state: null,
      reason: null,
      nodes: null,
      overFor: 0,
      submissions: (earlier?.submissions ?? 0) + 1,
    };
    await this.#context.update({ ...submissionMade(directory), batch });
    return { directory, batch };
  }

  async submit(submission: Submission): Promise<Submission> {
    // An earlier request over a lost connection shows in the directory.
    await this.#context.assertLeased(this.#session.connectedAt);
    const { directory, batch } = submission;
    const files = await this.#node
      .submit(directory, this.#context.payload, batch.engine)
      .catch((error: unknown) => this.#leaveUnanswered(submission, error));
    const submitted = { ...submission, files };
    return files.answer === 0 ? this.readId(submitted) : submitted;
  }

  /** Reads the batch system's id from what the submit command printed, if that has come. */
  async readId(submission: Submission): Promise<Submission> {
    const { printed } = await this.#node.readAnswer(submission.directory);
    const id = ENGINE[submission.batch.engine].parseId(printed);
    return id === undefined ? submission : this.#follow(submission, id);
  }

  /** The submit command failed, or no id in its answer is the job's: polls look for the job by its name. */
  async find(submission: Submission, isUnwanted: boolean): Promise<Submission> {
    const { batch, files } = submission;
    const read = batch.id === null ? await this.readId(submission) : submission;
    if (read !== submission) return read;
    if (batch.search === undefined) return this.#leave(submission, { search: 'due' });
    if (batch.unanswered !== undefined) return this.#goOnUnanswered(submission, isUnwanted);
    if (batch.search === 'due') return this.#leave(submission);
    if (files.start === 'open') return this.revoke(submission);
    // It never runs.
    if (files.start === 'revoked') return withdrawn(submission);
    return this.#leave(submission);
  }

  async revoke(submission: Submission): Promise<Submission> {
    return { ...submission, files: await this.#node.revoke(submission.directory) };
  }

  async withdraw(submission: Submission): Promise<Submission> {
    return { ...submission, files: await this.#node.withdraw(submission.directory) };
  }

  /** Has polls end the job. */
  async cancel(submission: Submission): Promise<Submission> {
    const { isUnwanted, unanswered } = submission.batch;
    if (!isUnwanted) return this.#leave(submission, { isUnwanted: true });
    return unanswered === undefined
      ? this.#leave(submission)
      : this.#goOnUnanswered(submission, true);
  }

  /** The submit command failed, and what it may have submitted never runs. */
  async judgeRefusal(submission: Submission): Promise<never> {
    const { complained } = await this.#node.readAnswer(submission.directory);
    const isFinal = submission.files.answer !== 0 && !isTransient(submission, complained);
    if (isFinal) throw refused(complained);
    return this.#submitAgain(submission, refused(complained));
  }

  submitAgain(submission: Submission, why: Unbegun): Promise<never> {
    const failure = why === 'unanswered' ? unanswered() : forgotten(MAX_SUBMISSIONS);
    return this.#submitAgain(submission, failure);
  }

  /** Later, less and less often, and in the end not again: nothing ran. */
  async #submitAgain({ batch }: Submission, failure: WindlassError): Promise<never> {
    const { submissions = 0 } = batch;
    if (submissions >= MAX_SUBMISSIONS) throw failure;
    const next = await look(this.#node, await this.prepare(batch));
    throw nextAttempt(this.#context.job, next, ASK_AGAIN_SECONDS * submissions);
  }

  /** Called before a directory is made: the host's poller removes it even if this worker is lost before recording it. */
  async #announce(): Promise<void> {
    const { job, sid, worker, update } = this.#context;
    if (!job.runAt) await update(submissionIntended());
    await followHost(worker.database.db, sid);
  }

  async #chooseEngine(): Promise<EngineName> {
    const { engines: found } = await this.#node.introduce();
    const engine = ENGINES.find(name => found.includes(name));
    if (!engine) throw noEngine();
    return engine;
  }

  /** Earlier answers were not about this id. */
  #follow(submission: Submission, id: string): Promise<Submission> {
    const { phase: _, overSince: __, unanswered: ___, ...rest } = submission.batch;
    return record(this.#context, submission, { ...rest, id, overFor: 0 });
  }

  /** The batch system does not answer: only what the directory decides is known. */
  async #goOnUnanswered(submission: Submission, isUnwanted: boolean): Promise<Submission> {
    const { start } = submission.files;
    // In whatever queue it may be, it never runs anything.
    if (start === 'revoked' && isUnwanted) throw maybeQueued(submission.batch.id);
    if (start === 'open' && (await this.#wasRefused(submission))) return this.revoke(submission);
    return this.#leave(submission);
  }

  async #wasRefused(submission: Submission): Promise<boolean> {
    const { answer } = submission.files;
    if (typeof answer !== 'number' || answer === 0) return false;
    const { complained } = await this.#node.readAnswer(submission.directory);
    return !isTransient(submission, complained);
  }

  /** A submit command that hangs is none of its host's faults: it is looked for as one that failed. */
  async #leaveUnanswered(submission: Submission, error: unknown): Promise<never> {
    const isHanging = error instanceof Error && error.cause instanceof UnfinishedProgram;
    if (!isHanging) throw error;
    const { batch } = submission;
    const unanswered = `${ENGINE[batch.engine].program} has not answered within ${ANSWER_SECONDS} s`;
    await record(this.#context, submission, { ...batch, unanswered });
    throw nextAttempt(this.#context.job, submission, ASK_AGAIN_SECONDS);
  }

  /** Leaves it to the polls, which wake the job. What they are to do is recorded: earlier answers were not about that. */
  async #leave(
    submission: Submission,
    todo?: Pick<BatchState, 'search' | 'isUnwanted'>,
  ): Promise<never> {
    const { unanswered: _, ...rest } = submission.batch;
    if (todo) await record(this.#context, submission, { ...rest, ...todo });
    throw nextAttempt(this.#context.job, submission, LOOK_AGAIN_SECONDS);
  }
}

const isTransient = ({ batch }: Submission, complained: string) =>
  ENGINE[batch.engine].isTransient(complained);

const withdrawn = (submission: Submission): Submission => ({
  ...submission,
  files: { ...submission.files, submit: 'withdrawn' },
});
