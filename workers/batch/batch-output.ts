import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';
import type { JobContext } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import { awaitDisk } from '../runs/await-disk.ts';
import { LATE_SECONDS } from './decide.ts';
import { cutOutput, exceeded } from './errors.ts';
import type { LoginNode } from './login-node.ts';
import { LOOK_AGAIN_SECONDS, nextAttempt, secondsSince } from './next-attempt.ts';
import { record, type Submission } from './submission.ts';
import type { ExitRecord } from './submission-state.ts';

/** Takes what a batch job prints from its files on the host, up to the limit of its output. */
export class BatchOutput {
  readonly #context: JobContext<'batch'>;
  readonly #node: LoginNode;
  readonly #writer: OutputWriter;
  /** How much of both streams was taken. */
  readonly #taken: OutputOffsets;
  /** Whether output of a cancelled job was taken and not stored. */
  #isCut = false;

  constructor(context: JobContext<'batch'>, node: LoginNode, writer: OutputWriter) {
    this.#context = context;
    this.#node = node;
    this.#writer = writer;
    this.#taken = { ...writer.stored };
  }

  /** Takes what there is, unless an earlier attempt has exceeded the limit, as far as the disk has room. */
  async take({ directory }: Submission): Promise<void> {
    for (let hasMore = true; hasMore && !this.isExceeded && !this.#writer.isDiskShort; ) {
      const { stdout, stderr, ...rest } = await this.#node.readOutput(directory, this.#taken);
      hasMore = rest.hasMore;
      this.#taken.stdout += stdout.length;
      this.#taken.stderr += stderr.length;
      if (stdout.length > 0) await this.#append('stdout', stdout);
      if (stderr.length > 0) await this.#append('stderr', stderr);
    }
  }

  /** What has no room is not missed of a job that was cancelled: its end on the host matters more. */
  async #append(stream: OutputStream, bytes: Buffer): Promise<void> {
    try {
      await this.#writer.append(stream, bytes);
    } catch (error) {
      if (!wasCancelled(this.#context) || !this.#writer.isForDisk(error)) throw error;
      this.#isCut = true;
    }
  }

  /** Stores what was taken. Throws if it is more than the job may print. */
  async close(): Promise<void> {
    await this.#writer.flush();
    this.assertLimit();
  }

  /** The job has printed more than it may. */
  get isExceeded(): boolean {
    return this.#limit > 0 && this.#taken.stdout + this.#taken.stderr > this.#limit;
  }

  assertLimit(): void {
    if (this.isExceeded) throw exceeded(this.#limit);
  }

  /** All that the job printed, or may print, was taken. */
  isWhole({ code, stdout, stderr }: ExitRecord): boolean {
    const { stdout: out, stderr: err } = this.#taken;
    const isRead = out >= stdout && err >= stderr;
    return !this.#isCut && (isRead || code === 'cwd' || this.isExceeded);
  }

  /** What the job printed has no room, or not all of it. */
  get lacksRoom(): boolean {
    return this.#isCut || this.#writer.isDiskShort;
  }

  /** What has no room now stays on the host until a later attempt. */
  assertRoom(): void {
    if (this.#writer.isDiskShort && !wasCancelled(this.#context)) throw awaitDisk();
  }

  /** A node's last bytes may be seen later here than the record of its end: waits for them until a later attempt. */
  async awaitRest(end: ExitRecord, submission: Submission): Promise<never> {
    const { directory, batch } = submission;
    this.assertRoom();
    const { lateSince } = batch;
    if (secondsSince(lateSince) >= LATE_SECONDS) throw cutOutput(end, this.#taken, directory);
    if (lateSince === undefined)
      await record(this.#context, submission, { ...batch, lateSince: new Date().toISOString() });
    throw nextAttempt(this.#context.job, submission, LOOK_AGAIN_SECONDS);
  }

  /** Bytes; 0 is no limit. */
  get #limit(): number {
    return this.#context.worker.config.LIMIT_OUTPUT_BYTES;
  }
}
