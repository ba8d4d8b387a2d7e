import { WindlassError } from '../../shared/errors/errors.ts';
import { MAX_TIMER_MS } from '../../shared/process/max-timer.ts';
import type { JobContext } from '../context.ts';
import type { OutputWriter } from '../output/output-writer.ts';

/** LIMIT_COMMAND_SECONDS or its own time-out, from its first start; LIMIT_OUTPUT_BYTES; and the room for output. */
export function watchLimits({ job, worker, payload }: JobContext<'command'>, output: OutputWriter) {
  const { LIMIT_COMMAND_SECONDS, LIMIT_OUTPUT_BYTES: bytes } = worker.config;
  const seconds = Math.min(payload.timeout ?? Infinity, LIMIT_COMMAND_SECONDS || Infinity);
  const limit = new AbortController();
  // Counts what was taken, not what is stored so far: after a burst nothing more may come for long.
  let taken = output.stored.stdout + output.stored.stderr;
  let until: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    const wait = Math.max(0, (until ?? 0) - performance.now());
    if (wait === 0) limit.abort(timeLimit(seconds));
    else timer = setTimeout(look, Math.min(wait, MAX_TIMER_MS));
  };
  const begun = (at: Date) => {
    if (until !== undefined || seconds === Infinity) return;
    until = performance.now() + seconds * 1_000 - (Date.now() - at.getTime());
    timer = setTimeout(look, 0);
  };
  if (job.runAt) begun(job.runAt);
  /** Why output was left out. */
  let cut: WindlassError | undefined;
  const cutFor = (reason: WindlassError) => {
    cut ??= reason;
    limit.abort(reason);
  };
  return {
    /** Aborted, with the error as its reason, when the command has used up its time or the room for its output. */
    signal: limit.signal,
    /** The command is about to start: a login may take longer than it may. */
    begun,
    /**
     * The part of this output that is stored: nothing beyond the limit of bytes. After the time limit all is stored,
     * because the command may have ended by itself before the stop.
     */
    take: (piece: Buffer): Buffer => {
      if (cut) return piece.subarray(0, 0);
      const left = bytes === 0 ? piece.length : Math.max(0, bytes - taken);
      taken += piece.length;
      if (piece.length > left) cutFor(outputLimit(bytes));
      return piece.subarray(0, left);
    },
    /** Ends the command where its output has no room; other errors are thrown. */
    endIfFull: (error: unknown): void => {
      if (!(error instanceof WindlassError && error.code === 'insufficient_storage')) throw error;
      cutFor(error);
    },
    /** Whether output was left out. */
    isCut: () => cut !== undefined,
    /** Throws if output was left out of a command that ended before it could be stopped. */
    assertKept: () => {
      if (cut) throw cut;
    },
    close: () => clearTimeout(timer),
  };
}

function timeLimit(seconds: number): WindlassError {
  return new WindlassError('time_limit', {
    detail: `the command ran for ${seconds} s and was stopped.`,
    hint: 'Split the work into shorter commands, or give a longer `timeout`. LIMIT_COMMAND_SECONDS limits all.',
  });
}

function outputLimit(bytes: number): WindlassError {
  return new WindlassError('output_limit', {
    detail: `the command wrote more than ${bytes} bytes and was stopped.`,
    hint: 'Write to a file on the host instead. LIMIT_OUTPUT_BYTES sets the limit.',
  });
}
