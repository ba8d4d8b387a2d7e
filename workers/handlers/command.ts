import { setTimeout as delay } from 'node:timers/promises';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { Stream } from '../../shared/jobs/output.ts';
import { type Handler, type JobContext, ReleaseJob } from '../context.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import { readAll } from '../runs/read-all.ts';
import { explainShutOut } from '../runs/run-errors.ts';
import { runOnHost } from '../runs/run-on-host.ts';
import { signalNumber } from '../runs/signal-number.ts';
import { withSession } from '../ssh/reconnect.ts';
import { mayHaveBeenSent } from '../ssh/remote-session.ts';
import type { SshChannel } from '../ssh/ssh-channel.ts';

/** Runs a command on the session's host: through its agent exactly once, without one at most once. */
const command: Handler<'command'> = async context => {
  const { worker, job } = context;
  // Only a plain exec has nothing to be forgotten while it may run.
  if (job.runAt && job.runRemoved) throw lost();
  const hasAgent = await worker.sessions.hasAgent(job.session ?? '').catch((error: unknown) => {
    throw explainShutOut(context, error);
  });
  const output = await context.output();
  const limits = watchLimits(context, output);
  const take = async (stream: Stream, bytes: Buffer) => {
    await output.append(stream, bytes);
    limits.count(bytes.length);
  };
  try {
    const run = { context, output, take, limit: limits.signal };
    const returncode = hasAgent ? await runWithAgent(run) : await runPlainly(run);
    limits.checkOutput();
    return {
      result: { returncode },
      after: async () => context.worker.sessions.removeFinishedRun(context.job),
    };
  } finally {
    limits.close();
    await output.flush();
  }
};

export default command;

interface Run {
  context: JobContext<'command'>;
  output: OutputWriter;
  take(stream: Stream, bytes: Buffer): Promise<void>;
  limit: AbortSignal;
}

async function runWithAgent({ context, output, take, limit }: Run): Promise<number> {
  const end = await runOnHost(context, context.payload, {
    stored: async () => {
      // What is on its way to the store would come from the host a second time.
      await output.flush();
      return { ...output.stored };
    },
    take,
    limit,
    acknowledge: ack => output.whenStored(ack),
  });
  await output.flush();
  const { stdout, stderr } = output.stored;
  if (stdout !== end.stdoutBytes || stderr !== end.stderrBytes) {
    throw new Error(
      `of ${end.stdoutBytes} and ${end.stderrBytes} bytes ${stdout} and ${stderr} were stored`,
    );
  }
  return end.code;
}

/** A plain exec. If the worker or the link is lost in between, nobody can know what became of it, and it is not run again. */
async function runPlainly({ context, take, limit }: Run): Promise<number> {
  const { job, payload, stopping } = context;
  if (job.runAt) throw lost();
  if (stopping.aborted) throw new ReleaseJob('the worker is stopping');
  return withSession(context, async session => {
    const note = async (set: Pick<JobRow, 'runAt' | 'runRemoved'>) => {
      await context.update(set);
      Object.assign(job, set);
    };
    const promise = async () => {
      if (!job.runAt) await note({ runAt: new Date(), runRemoved: true });
      await context.assertLeased(session.since);
    };
    const channel = await session
      .exec(payload.command, context.over, promise)
      .catch(async (error: unknown) => {
        if (job.runAt && mayHaveBeenSent(error)) throw lost(error);
        if (job.runAt) await note({ runAt: null, runRemoved: false });
        throw error;
      });
    channel.stdin.end();
    return readToEnd({ context, take, limit }, channel).finally(() => channel.destroy());
  });
}

async function readToEnd(
  { context, take, limit }: Omit<Run, 'output'>,
  channel: SshChannel,
): Promise<number> {
  const { cancel, signal } = context;
  const read = (stream: Stream) => readAll(channel[stream], bytes => take(stream, bytes));
  const whole = Promise.all([read('stdout'), read('stderr')]);
  // A server may keep the channel of a command that does not die: it is not waited for.
  const givenUp = whenAborted(AbortSignal.any([cancel, signal, limit])).then(() =>
    // What is another worker's to tell of is not ended from here.
    signal.aborted ? false : endCommand(channel),
  );
  await Promise.race([whole, givenUp]).catch((error: unknown) => {
    if (!isPrematureClose(error)) throw error;
  });
  whole.catch(() => {});
  const closed = await Promise.race([channel.closed, givenUp.then(() => undefined)]);
  signal.throwIfAborted();
  limit.throwIfAborted();
  if (cancel.aborted && !(await givenUp)) throw mayRunOn();
  cancel.throwIfAborted();
  if (closed?.signal) return 128 + signalNumber(closed.signal);
  if (!closed || closed.code === null) throw lost();
  return closed.code;
}

/**
 * As far as a plain exec can be ended: by signals, which a server passes on to the command's process group, or does not
 * (OpenSSH's where a command is forced). True where the server then tells the command's end.
 */
async function endCommand(channel: SshChannel): Promise<boolean> {
  for (const name of ['TERM', 'KILL'] as const) {
    channel.signal(name);
    const pause = new AbortController();
    const waited = delay(1_000, false, { signal: pause.signal }).catch(() => false);
    const ended = await Promise.race([channel.closed.then(() => true), waited]);
    pause.abort();
    if (ended) return true;
  }
  channel.destroy();
  return false;
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function isPrematureClose(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE';
}

function lost(cause?: unknown): WindlassError {
  return new WindlassError('outcome_unknown', {
    detail:
      'Outcome unknown: the worker or the link was lost while the command ran without an agent.',
    hint: 'Look on the host what it did before you start it again. Sessions with an agent survive this.',
    cause,
  });
}

function mayRunOn(): WindlassError {
  return new WindlassError('cancelled', {
    detail: 'Cancelled, but the host does not tell that the command ended: it may run on there.',
    hint: 'Look on the host. In a session with an agent a command is ended with all that it started.',
  });
}

/** Aborted, with the error as its reason, when the command has used up its time or its output. */
function watchLimits(
  { job, worker }: JobContext<'command'>,
  output: OutputWriter,
): { signal: AbortSignal; count(taken: number): void; checkOutput(): void; close(): void } {
  const { LIMIT_COMMAND_SECONDS: seconds, LIMIT_OUTPUT_BYTES: bytes } = worker.config;
  const limit = new AbortController();
  // Not what is stored by now: after one burst nothing may come for long that would have it looked at again.
  let taken = output.stored.stdout + output.stored.stderr;
  const left = seconds * 1_000 - (Date.now() - Number(job.runAt ?? Date.now()));
  const timer =
    seconds > 0
      ? setLongTimeout(() => limit.abort(timeLimit(seconds)), Math.max(0, left))
      : undefined;
  return {
    signal: limit.signal,
    count: more => {
      taken += more;
      if (bytes > 0 && taken > bytes) limit.abort(outputLimit(bytes));
    },
    // What ended before it could be stopped has written too much all the same.
    checkOutput: () => {
      if (bytes > 0 && taken > bytes) throw outputLimit(bytes);
    },
    close: () => clearTimeout(timer),
  };
}

/** setTimeout's own limit is 24.8 days; no command is given more. */
function setLongTimeout(callback: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(ms, 2 ** 31 - 1));
}

function timeLimit(seconds: number): WindlassError {
  return new WindlassError('time_limit', {
    detail: `Time limit reached: the command ran for ${seconds} s and was stopped.`,
    hint: 'Split the work into shorter commands. LIMIT_COMMAND_SECONDS sets the limit.',
  });
}

function outputLimit(bytes: number): WindlassError {
  return new WindlassError('output_limit', {
    detail: `Output limit reached: the command wrote more than ${bytes} bytes and was stopped.`,
    hint: 'Write to a file on the host instead. LIMIT_OUTPUT_BYTES sets the limit.',
  });
}
