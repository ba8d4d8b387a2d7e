import { setTimeout as delay } from 'node:timers/promises';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { OutputStream } from '../../shared/jobs/output.ts';
import { effectIntended, intentWithdrawn } from '../../shared/jobs/run-intent.ts';
import { whenAborted } from '../../shared/process/abort.ts';
import type { JobContext } from '../context.ts';
import { isCancelled, wasCancelled } from '../engine/job-signals.ts';
import { withSessionEnv } from '../ssh/command-defaults.ts';
import { readAll } from '../ssh/read-all.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import type { SshChannel } from '../ssh/ssh-channel.ts';
import { mayHaveBeenSent } from '../ssh/ssh-errors.ts';
import type { CommandSink } from './command-sink.ts';
import { isPlain, launchScript, silently } from './launch-script.ts';
import { signalNumber } from './signal-number.ts';

type Sink = Pick<CommandSink, 'take' | 'limit' | 'begun'>;

/**
 * Runs a command over its own channel, without an agent, at most once: after a lost worker or link its end is unknown,
 * and it is not repeated. Returns the exit status, 128 + n for a signal, or 255 where the host
 * does not tell which. Throws `outcome_unknown`.
 */
export async function runPlainExec(context: JobContext<'command'>, sink: Sink): Promise<number> {
  const { job, payload, update } = context;
  // Committed before the host is asked: the next worker then knows that the command may have run.
  const recordIntent = async () => {
    context.pin();
    if (!job.runAt) await update(effectIntended());
  };
  const withdrawIntent = async () => {
    await update(intentWithdrawn);
    context.unpin();
  };
  const exec = async (session: RemoteSession) => {
    if (job.runAt) throw outcomeLost();
    const beforeExec = async () => {
      await recordIntent();
      await context.assertLeased(session.connectedAt);
    };
    const launch = withSessionEnv(payload, session.defaults);
    const channel = await session
      .exec(isPlain(launch) ? launch.command : 'exec /bin/sh', context.signal, beforeExec)
      .catch(async (error: unknown) => {
        if (job.runAt && mayHaveBeenSent(error)) throw outcomeLost(error);
        if (job.runAt) await withdrawIntent();
        throw error;
      });
    sink.begun?.(new Date());
    const script = () => silently(launchScript(launch, job.id));
    channel.stdin.end(isPlain(launch) ? undefined : script());
    const over = new AbortController();
    return readToEnd(context, sink, { channel, over: over.signal }).finally(() => {
      over.abort();
      channel.destroy();
    });
  };
  if (job.runAt) throw outcomeLost();
  const signal = () => (job.runAt ? context.cleanupSignal : context.signal);
  return withSession(context, exec, { signal });
}

async function readToEnd(
  context: JobContext,
  { take, limit }: Sink,
  { channel, over }: { channel: SshChannel; over: AbortSignal },
): Promise<number> {
  const { signal } = context;
  const read = (stream: OutputStream) => readAll(channel[stream], bytes => take(stream, bytes));
  const whole = Promise.all([read('stdout'), read('stderr')]);
  // Does not wait for the close: a server may keep the channel of a command that does not die open.
  const stopped = whenAborted([signal, limit], over).then(() =>
    // After a revoked lease another worker decides what happens to the command.
    signal.aborted && !wasCancelled(context) ? false : endCommand(channel),
  );
  await Promise.race([whole, stopped]).catch((error: unknown) => {
    if (!isPrematureClose(error)) throw error;
  });
  whole.catch(() => {});
  const closed = await Promise.race([channel.closed, stopped.then(() => undefined)]);
  if (!isCancelled(signal.reason)) signal.throwIfAborted();
  limit.throwIfAborted();
  if (signal.aborted) throw (await stopped) ? signal.reason : mayRunOn();
  if (closed?.signal) {
    const number = signalNumber(closed.signal);
    // sshd names no signal that RFC 4254 does not list; ssh then exits with 255.
    return number === 0 ? 255 : 128 + number;
  }
  if (!closed || closed.code === null) throw outcomeLost();
  return closed.code;
}

/**
 * Ends a command by signals, which sshd passes to its process group unless it is a forced command. Returns whether the
 * server then reports its end.
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

function isPrematureClose(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** For a command that may have run over a lost connection or for a lost worker. */
export function outcomeLost(cause?: unknown): WindlassError {
  return new WindlassError('outcome_unknown', {
    detail: 'the worker or the link was lost while the command ran without an agent.',
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
