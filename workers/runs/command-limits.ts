import { WindlassError } from '../../shared/errors.ts';
import type { JobContext } from '../context.ts';
import type { OutputWriter } from '../output/output-writer.ts';

interface CommandLimits {
  /** Aborted, with the error as its reason, when the command has used up its time or its output. */
  signal: AbortSignal;
  /** Adds to the output that the command has written. */
  count(bytes: number): void;
  /** Throws `output_limit`. For a command that ended before it could be stopped. */
  checkOutput(): void;
  close(): void;
}

/** LIMIT_COMMAND_SECONDS, from the command's first start, and LIMIT_OUTPUT_BYTES. */
export function watchLimits(
  { job, worker }: JobContext<'command'>,
  output: OutputWriter,
): CommandLimits {
  const { LIMIT_COMMAND_SECONDS: seconds, LIMIT_OUTPUT_BYTES: bytes } = worker.config;
  const limit = new AbortController();
  // All that was taken, not what is stored by now: after a burst nothing more may come for long.
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
    checkOutput: () => {
      if (bytes > 0 && taken > bytes) throw outputLimit(bytes);
    },
    close: () => clearTimeout(timer),
  };
}

/** setTimeout's limit is 24.8 days; longer limits end there. */
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
