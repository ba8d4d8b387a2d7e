import { isDeepStrictEqual } from 'node:util';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { OutputOffsets } from '../../shared/jobs/output.ts';
import {
  type BatchState,
  ENGINES,
  type EngineName,
  folderOf,
} from '../../shared/jobs/payloads/batch.ts';
import type { JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import { withSessionEnv } from '../runs/command-defaults.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { type Action, decide, LATE_SECONDS } from './decide.ts';
import { ENGINE } from './engines.ts';
import {
  cutOutput,
  describeFailure,
  exceeded,
  forgotten,
  noEngine,
  notPrepared,
  refused,
  unanswered,
} from './errors.ts';
import { LoginNode } from './login-node.ts';
import { followHost } from './polls.ts';
import type { ExitRecord, SubmissionState } from './submission-state.ts';

/** A job looks by itself after so long: its host may not be polled by anybody. */
const LOOK_AGAIN_SECONDS = 60;
/** After so long the host is asked again for what a poll cannot tell. */
const ASK_AGAIN_SECONDS = 5;
/**
 * Limit of submissions for a job that the batch system does not take, or forgets before it begins, for passing reasons.
 */
const MOST_SUBMISSIONS = 12;

const secondsSince = (time: string | undefined) =>
  time === undefined ? 0 : (Date.now() - Date.parse(time)) / 1_000;

/**
 * One visit of a job to its host: does what can be done now, then ends or releases the job, so that it holds no slot
 * while the batch system has it.
 */
export class BatchRun {
  readonly #context: JobContext<'batch'>;
  readonly #session: RemoteSession;
  readonly #node: LoginNode;
  readonly #output: OutputWriter;
  /** How much of both streams was taken. */
  readonly #taken: OutputOffsets;
  #limit: WindlassError | undefined;
  #hasLooked = false;

  constructor(context: JobContext<'batch'>, session: RemoteSession, output: OutputWriter) {
    this.#context = context;
    this.#session = session;
    this.#output = output;
    this.#taken = { ...output.stored };
    // After the first submission a cancel needs requests to the host.
    this.#node = new LoginNode(session, context.cleanupSignal);
  }

  async visit(): Promise<ExitRecord> {
    if (!this.#job.batch) await this.#prepare();
    for (let submission = await this.#node.look(this.#directory); ; ) {
      this.#hasLooked = true;
      if (submission.start === 'begun') await this.#takeOutput();
      const before = this.#batch;
      const { id, phase, overFor } = before;
      const known = { submission, id, phase, overFor, overSeconds: secondsSince(before.overSince) };
      const next = await this.#act(decide({ ...known, isUnwanted: this.#isUnwanted }), submission);
      if ('code' in next) return next;
      // In a home that is read-only nothing is decided.
      const isSame = isDeepStrictEqual([next, this.#batch], [submission, before]);
      if (isSame) return this.#release(submission, LOOK_AGAIN_SECONDS);
      submission = next;
    }
  }

  /** Whether the host told where the job stands. */
  get hasLooked(): boolean {
    return this.#hasLooked;
  }

  /** Throws the limit that the job exceeded. */
  checkLimit(): void {
    if (this.#limit) throw this.#limit;
  }

  get #job(): JobRow {
    return this.#context.job;
  }

  get #batch(): BatchState {
    return this.#job.batch as BatchState;
  }

  get #directory(): string {
    return this.#job.runPlace ?? '';
  }

  get #submissions(): number {
    return this.#job.batch?.submissions ?? 0;
  }

  get #isUnwanted(): boolean {
    return wasCancelled(this.#context) || this.#limit !== undefined;
  }

  async #act(action: Action, submission: SubmissionState): Promise<SubmissionState | ExitRecord> {
    const node = this.#node;
    switch (action.type) {
      case 'submit':
        return this.#submit();
      case 'find':
        return this.#find(submission);
      case 'revoke':
        return node.revoke(this.#directory);
      case 'withdraw':
        return node.withdraw(this.#directory);
      case 'again':
        return this.#submitAgain(
          this.#batch.id === null ? unanswered() : forgotten(MOST_SUBMISSIONS),
        );
      case 'finish':
        // It may have ended before anyone read the answer of the submit command.
        if (this.#batch.id === null) await this.#readId();
        if (this.#isWhole(action.end)) return action.end;
        return this.#awaitOutput(action.end, submission);
      case 'cancel':
        await node.cancel(this.#batch.engine, this.#batch.id ?? '', this.#directory);
        return this.#release(submission, LOOK_AGAIN_SECONDS);
      case 'stopped':
        await this.#takeOutput();
        throw this.#limit ?? new WindlassError('cancelled');
      case 'fail':
        await this.#takeOutput();
        if (action.why === 'refused') return this.#judgeRefusal(submission);
        throw describeFailure(action.why, this.#batch, wasCancelled(this.#context));
      case 'wait':
        return this.#release(submission, this.#batch.id ? LOOK_AGAIN_SECONDS : ASK_AGAIN_SECONDS);
    }
  }

  /**
   * Makes a directory on the host and records it: only a recorded one is submitted, by the worker that holds the job.
   */
  async #prepare(): Promise<void> {
    const payload = withSessionEnv(this.#context.payload, this.#session.defaults);
    const engine = this.#job.batch?.engine ?? (await this.#chooseEngine());
    await this.#intend();
    const directory = `${this.#job.id}-${newId().slice(-8)}`;
    const failure = await this.#node.prepare(directory, payload, engine);
    if (failure) throw notPrepared(failure, folderOf(payload));
    const batch: BatchState = {
      engine,
      id: null,
      state: null,
      reason: null,
      nodes: null,
      overFor: 0,
      submissions: this.#submissions + 1,
    };
    // With runAt, so that the commit waits for the disk: it precedes a submission.
    await this.#update({ runAt: new Date(), runPlace: directory, batch });
  }

  /** Before a directory is made: then the host's poller removes it even if this worker is lost before recording it. */
  async #intend(): Promise<void> {
    if (!this.#job.runAt) await this.#update({ runAt: new Date() });
    await followHost(this.#context.worker.database.db, this.#job.session ?? '');
  }

  async #chooseEngine(): Promise<EngineName> {
    const { engines: found } = await this.#node.introduce();
    const engine = ENGINES.find(name => found.includes(name));
    if (!engine) throw noEngine();
    return engine;
  }

  async #submit(): Promise<SubmissionState> {
    // An earlier request over a lost connection shows in the directory.
    await this.#context.assertLeased(this.#session.connectedAt);
    const submission = await this.#node.submit(
      this.#directory,
      this.#context.payload,
      this.#batch.engine,
    );
    if (submission.answer === 0) await this.#readId();
    return submission;
  }

  async #readId(): Promise<void> {
    const { printed } = await this.#node.readAnswer(this.#directory);
    const id = ENGINE[this.#batch.engine].parseId(printed);
    if (id !== undefined) await this.#follow(id);
  }

  /** Earlier answers were not about this id. */
  async #follow(id: string): Promise<void> {
    const { phase: _, overSince: __, ...rest } = this.#batch;
    await this.#update({ batch: { ...rest, id, overFor: 0 } });
  }

  /** The submit command failed, or its answer was lost: asks the batch system for the job by its name. */
  async #find(submission: SubmissionState): Promise<SubmissionState> {
    await this.#readId();
    if (this.#batch.id !== null) return submission;
    const id = await this.#node.find(this.#batch.engine, this.#directory);
    if (id === undefined) return this.#goOnUnanswered(submission);
    if (id !== null) {
      await this.#follow(id);
      return submission;
    }
    if (submission.start === 'open') return this.#node.revoke(this.#directory);
    // It never runs.
    if (submission.start === 'revoked') return { ...submission, submit: 'withdrawn' };
    const overFor = this.#batch.overFor + 1;
    await this.#update({ batch: { ...this.#batch, phase: 'absent', overFor } });
    return this.#release(submission, ASK_AGAIN_SECONDS);
  }

  /** The batch system does not answer: only what the directory decides is known. */
  async #goOnUnanswered(submission: SubmissionState): Promise<SubmissionState> {
    // In whatever queue it may be, it never runs anything.
    if (submission.start === 'revoked' && this.#isUnwanted)
      return { ...submission, submit: 'withdrawn' };
    if (submission.start === 'open' && (await this.#wasRefused(submission)))
      return this.#node.revoke(this.#directory);
    return this.#release(submission, ASK_AGAIN_SECONDS);
  }

  async #wasRefused({ answer }: SubmissionState): Promise<boolean> {
    if (typeof answer !== 'number' || answer === 0) return false;
    const { complained } = await this.#node.readAnswer(this.#directory);
    return !ENGINE[this.#batch.engine].isTransient(complained);
  }

  /** The submit command failed, and what it may have submitted never runs. */
  async #judgeRefusal(submission: SubmissionState): Promise<SubmissionState> {
    const { complained } = await this.#node.readAnswer(this.#directory);
    const isFinal = submission.answer !== 0 && !ENGINE[this.#batch.engine].isTransient(complained);
    if (isFinal) throw refused(complained);
    return this.#submitAgain(refused(complained));
  }

  /** Later, less and less often, and in the end not again: nothing ran. */
  async #submitAgain(failure: WindlassError): Promise<SubmissionState> {
    if (this.#submissions >= MOST_SUBMISSIONS) throw failure;
    const seconds = ASK_AGAIN_SECONDS * this.#submissions;
    await this.#prepare();
    return this.#release(await this.#node.look(this.#directory), seconds);
  }

  async #takeOutput(): Promise<void> {
    // Before the host is asked: an earlier visit may have exceeded the limit, and no more output comes.
    for (let hasMore = true; !this.#isLimited() && hasMore; ) {
      const { stdout, stderr, ...rest } = await this.#node.readOutput(this.#directory, this.#taken);
      hasMore = rest.hasMore;
      this.#taken.stdout += stdout.length;
      this.#taken.stderr += stderr.length;
      if (stdout.length > 0) await this.#output.append('stdout', stdout);
      if (stderr.length > 0) await this.#output.append('stderr', stderr);
    }
  }

  /** Notes that it has printed too much. */
  #isLimited(): boolean {
    const { LIMIT_OUTPUT_BYTES: most } = this.#context.worker.config;
    if (most > 0 && this.#taken.stdout + this.#taken.stderr > most) this.#limit = exceeded(most);
    return this.#limit !== undefined;
  }

  #isWhole({ code, stdout, stderr }: ExitRecord): boolean {
    const { stdout: out, stderr: err } = this.#taken;
    const isRead = out >= stdout && err >= stderr;
    return isRead || code === 'cwd' || this.#limit !== undefined;
  }

  /** A node's last bytes may be seen later here than the record of its end. */
  async #awaitOutput(end: ExitRecord, submission: SubmissionState): Promise<never> {
    const { lateSince } = this.#batch;
    if (secondsSince(lateSince) >= LATE_SECONDS) throw cutOutput(end, this.#taken, this.#directory);
    if (lateSince === undefined)
      await this.#update({ batch: { ...this.#batch, lateSince: new Date().toISOString() } });
    return this.#release(submission, LOOK_AGAIN_SECONDS);
  }

  async #release(submission: SubmissionState, seconds: number): Promise<never> {
    await this.#output.flush();
    const isRunning = this.#job.state === 'running' || submission.start === 'begun';
    const started = isRunning && !this.#job.started ? { started: new Date() } : {};
    throw new ReleaseJob('its batch system has the job', seconds, {
      ...started,
      state: isRunning ? 'running' : 'queued',
      consecutiveLosses: 0,
    });
  }

  async #update(set: Partial<JobRow>): Promise<void> {
    await this.#context.update(set);
    Object.assign(this.#job, set);
  }
}
