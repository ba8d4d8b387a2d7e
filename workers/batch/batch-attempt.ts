import { isDeepStrictEqual } from 'node:util';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { BatchOutput } from './batch-output.ts';
import { type Action, decide, JUDGED_SECONDS } from './decide.ts';
import { describeFailure } from './errors.ts';
import { LoginNode } from './login-node.ts';
import {
  ASK_AGAIN_SECONDS,
  LOOK_AGAIN_SECONDS,
  nextAttempt,
  secondsSince,
} from './next-attempt.ts';
import { look, readSubmission, record, type Submission } from './submission.ts';
import type { ExitRecord } from './submission-state.ts';
import { Submitting } from './submitting.ts';

/**
 * One attempt at a batch job: does on its host what can be done now, then ends or releases the job, so that it holds no slot
 * while the batch system has it.
 */
export class BatchAttempt {
  readonly #context: JobContext<'batch'>;
  readonly #node: LoginNode;
  readonly #submitting: Submitting;
  readonly #output: BatchOutput;
  #hasLooked = false;

  constructor(context: JobContext<'batch'>, session: RemoteSession, output: OutputWriter) {
    this.#context = context;
    // After the first submission a cancel needs requests to the host.
    this.#node = new LoginNode(session, context.cleanupSignal);
    this.#submitting = new Submitting(context, session, this.#node);
    this.#output = new BatchOutput(context, this.#node, output);
  }

  /** Returns how the job ended, with its output stored. */
  async run(): Promise<ExitRecord> {
    const recorded = readSubmission(this.#context.job) ?? (await this.#submitting.prepare());
    for (let submission = await look(this.#node, recorded); ; ) {
      this.#hasLooked = true;
      if (submission.files.start === 'begun') await this.#output.take(submission);
      const next = await this.#act(this.#decide(submission), submission);
      if ('code' in next) {
        await this.#output.close();
        return next;
      }
      // In a home that is read-only nothing is decided.
      if (isDeepStrictEqual(next, submission))
        throw nextAttempt(this.#context.job, submission, LOOK_AGAIN_SECONDS);
      submission = next;
    }
  }

  /** Whether the host told where the job stands. */
  get hasLooked(): boolean {
    return this.#hasLooked;
  }

  get #isUnwanted(): boolean {
    return wasCancelled(this.#context) || this.#output.isExceeded;
  }

  #decide({ files, batch }: Submission): Action {
    const { id, phase, state, overFor, overSince, endSince } = batch;
    const wasSeen = state !== null;
    const overSeconds = secondsSince(overSince);
    const endSeconds = secondsSince(endSince);
    const isUnwanted = this.#isUnwanted;
    return decide({ files, id, phase, wasSeen, overFor, overSeconds, endSeconds, isUnwanted });
  }

  async #act(action: Action, submission: Submission): Promise<Submission | ExitRecord> {
    const submitting = this.#submitting;
    switch (action.type) {
      case 'submit':
        return submitting.submit(submission);
      case 'find':
        return submitting.find(submission, this.#isUnwanted);
      case 'revoke':
        return submitting.revoke(submission);
      case 'withdraw':
        return submitting.withdraw(submission);
      case 'again':
        return submitting.submitAgain(submission, action.why);
      case 'cancel':
        return submitting.cancel(submission);
      case 'finish':
        return this.#finish(action.end, submission);
      case 'stopped':
        await this.#output.take(submission);
        this.#output.assertLimit();
        throw new WindlassError('cancelled');
      case 'fail':
        await this.#output.take(submission);
        this.#output.assertRoom();
        if (action.why === 'refused') return submitting.judgeRefusal(submission);
        throw describeFailure(action.why, submission.batch, wasCancelled(this.#context));
      case 'wait':
        return this.#wait(submission);
    }
  }

  async #wait(submission: Submission): Promise<never> {
    const { batch, files } = submission;
    if (files.end && batch.endSince === undefined)
      await record(this.#context, submission, { ...batch, endSince: new Date().toISOString() });
    const seconds = batch.id === null ? ASK_AGAIN_SECONDS : LOOK_AGAIN_SECONDS;
    throw nextAttempt(this.#context.job, submission, files.end ? JUDGED_SECONDS : seconds);
  }

  async #finish(end: ExitRecord, submission: Submission): Promise<ExitRecord> {
    // It may have ended before anyone read the answer of the submit command.
    const isUnread = submission.batch.id === null;
    const known = isUnread ? await this.#submitting.readId(submission) : submission;
    if (this.#output.isWhole(end)) return end;
    if (this.#output.lacksRoom && wasCancelled(this.#context)) throw new WindlassError('cancelled');
    return this.#output.awaitRest(end, known);
  }
}
