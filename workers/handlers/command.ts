import { eq } from 'drizzle-orm';
import { chunks } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';
import { isPlainExec, whatWasLost } from '../../shared/jobs/run-intent.ts';
import type { Handler, JobContext, Outcome } from '../context.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { OutputWriter } from '../output/output-writer.ts';
import { awaitDisk, endDiskWait, isWaitingForDisk } from '../runs/await-disk.ts';
import { watchLimits } from '../runs/command-limits.ts';
import type { CommandSink } from '../runs/command-sink.ts';
import { directoryNotFound } from '../runs/directory-not-found.ts';
import { NO_DIRECTORY, noDirectoryOutput, toRunScript } from '../runs/launch-script.ts';
import { outcomeLost, runPlainExec } from '../runs/plain-exec.ts';
import { explainAccessDenied } from '../runs/run-errors.ts';
import { runOnHost } from '../runs/run-on-host.ts';
import type { RunEnd } from '../runs/run-state.ts';
import { hasAgent } from '../ssh/reconnect.ts';

/** Runs a command on the session's host: exactly once by its agent, at most once without one. */
const command: Handler<'command'> = async context => {
  const { job } = context;
  const lost = whatWasLost(job);
  if (lost) throw lost === 'end' ? endLost() : outcomeLost();
  const usesAgent = await hasAgent(context).catch((error: unknown) => {
    throw explainAccessDenied(context, error);
  });
  const output = await context.output();
  const limits = watchLimits(context, output);
  /** Nobody waits for a command that was cancelled, and what a plain exec prints cannot be read again. */
  const mayWait = () => !wasCancelled(context) && !isPlainExec(job);
  const waits = (error: unknown) => output.isForDisk(error) && mayWait();
  try {
    // Others may have nothing more to print.
    const needsRoom = !job.runAt || isWaitingForDisk(job);
    if (output.isDiskShort && needsRoom && mayWait()) throw awaitDisk();
    await endDiskWait(context);
    const take = (stream: OutputStream, bytes: Buffer) =>
      output.append(stream, bytes).catch((error: unknown) => {
        if (waits(error)) throw awaitDisk();
        limits.endIfFull(error);
      });
    return await run(context, { usesAgent, output, limits, take }).finally(() => output.flush());
  } catch (error) {
    throw waits(error) ? awaitDisk() : error;
  } finally {
    limits.close();
  }
};

export default command;

interface CommandRun {
  usesAgent: boolean;
  output: OutputWriter;
  limits: ReturnType<typeof watchLimits>;
  take(stream: OutputStream, bytes: Buffer): Promise<void>;
}

async function run(
  context: JobContext<'command'>,
  { usesAgent, output, limits, take }: CommandRun,
): Promise<Outcome<'command'>> {
  const { job, payload } = context;
  const received = { ...output.stored };
  let acknowledge = (_: OutputOffsets) => {};
  const sink: CommandSink = {
    take: async (stream, bytes) => {
      received[stream] += bytes.length;
      const taken = limits.take(bytes);
      if (taken.length > 0) await take(stream, taken);
      // The host sends no more, so not the end, before what is left out for good is acknowledged too.
      if (limits.isCut() && wasCancelled(context)) acknowledge({ ...received });
    },
    limit: limits.signal,
    begun: limits.begun,
    stored: async () => {
      // The host would send again what is not stored yet.
      await output.flush();
      return { ...Object.assign(received, output.stored) };
    },
    acknowledge: ack => {
      acknowledge = ack;
      output.whenStored(ack);
    },
  };
  const returncode = usesAgent
    ? await runOnHost(context, on => toRunScript(payload, job.id, on), sink).then(end => {
        limits.assertKept();
        return checkWhole(output, end);
      })
    : await runPlainExec(context, sink);
  limits.assertKept();
  if (returncode === NO_DIRECTORY && (await saysNoDirectory(context, output)))
    throw directoryNotFound(payload.cwd);
  return {
    result: { returncode },
    after: async () => context.worker.finishedRuns.removeSoon(context.job),
  };
}

function endLost(): WindlassError {
  return new WindlassError('outcome_unknown', {
    detail: 'the command ended, and a failover of the database lost its end.',
    hint: 'Look on the host what it did before you start it again.',
  });
}

/** Whether the run wrote only that it could not enter its directory: then its command did not run. */
async function saysNoDirectory(
  { worker, job, payload }: JobContext<'command'>,
  output: OutputWriter,
): Promise<boolean> {
  await output.flush();
  const said = Buffer.from(noDirectoryOutput(job.id));
  const { stdout, stderr } = output.stored;
  if (payload.cwd === undefined || stdout > 0 || stderr !== said.length) return false;
  const rows = await worker.database.db
    .select({ bytes: chunks.bytes })
    .from(chunks)
    .where(eq(chunks.job, job.id))
    .orderBy(chunks.seq);
  return Buffer.concat(rows.map(({ bytes }) => bytes)).equals(said);
}

/** The exit status of a run whose whole output is stored. */
async function checkWhole(output: OutputWriter, end: RunEnd): Promise<number> {
  await output.flush();
  const { stdout, stderr } = output.stored;
  if (stdout === end.stdoutBytes && stderr === end.stderrBytes) return end.code;
  const sizes = `${end.stdoutBytes} and ${end.stderrBytes}`;
  throw new Error(`of ${sizes} bytes ${stdout} and ${stderr} were stored`);
}
