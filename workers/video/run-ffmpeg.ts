import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import createCommand, { type FfmpegCommand } from 'fluent-ffmpeg';
import { signalNumber } from '../runs/signal-number.ts';
import type { FfmpegArguments } from './ffmpeg-arguments.ts';

/** How much of standard error is kept, from its end. */
const STDERR_KEPT = 8192;

export interface RunFfmpegOptions {
  ffmpeg: string;
  arguments: Pick<FfmpegArguments, 'input' | 'output'>;
  /** Goes to standard input with backpressure; destroyed at the end. Its error ends ffmpeg. */
  input: Readable;
  outputPath: string;
  /** ffmpeg's standard output, in pieces of text. */
  onStdout(piece: string): void;
  signal?: AbortSignal;
}

export interface FfmpegEnd {
  /** Exit code, 128 + n where signal n ended it, -1 where it could not be started. */
  returncode: number;
  /** The end of standard error, at most 8 KiB. */
  stderr: string;
}

/**
 * Runs ffmpeg through fluent-ffmpeg, of which no other file knows. Settles when the process is gone:
 * with its end, or by throwing the input's error or the signal's reason. If this process dies
 * instead, ffmpeg sees the end of its input and ends by itself.
 */
export async function runFfmpeg(options: RunFfmpegOptions): Promise<FfmpegEnd> {
  const { input, signal } = options;
  signal?.throwIfAborted();
  let inputError: unknown;
  input.on('error', error => {
    inputError ??= error;
  });
  const onAbort = () =>
    input.destroy(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const end = await runCommand(options, () => inputError !== undefined);
    signal?.throwIfAborted();
    if (inputError !== undefined) throw inputError;
    return end;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    input.destroy();
  }
}

async function runCommand(options: RunFfmpegOptions, hasFailed: () => boolean): Promise<FfmpegEnd> {
  const { input, output } = options.arguments;
  const command = createCommand({ source: options.input, stdoutLines: 1 })
    .inputOptions(...input)
    .outputOptions(...output)
    .output(options.outputPath);
  // Kept for the whole process by fluent-ffmpeg: videos that are made at once must use the same one.
  command.setFfmpegPath(options.ffmpeg);
  let child: ChildProcess | undefined;
  return new Promise(resolve => {
    const fail = (error: Error) => resolve({ returncode: -1, stderr: error.message });
    // Before there is a process it could not be started; afterwards the input has failed.
    command.on('error', (error: Error) => (child ? child.kill('SIGKILL') : fail(error)));
    command.once('start', () => {
      // The types leave it out; it is the only way to the exit code and to standard output as it comes.
      child = (command as FfmpegCommand & { ffmpegProc: ChildProcess }).ffmpegProc;
      followChild(child, { onStdout: options.onStdout, resolve, fail });
      if (hasFailed()) child.kill('SIGKILL');
    });
    command.run();
  });
}

interface Follow {
  onStdout(piece: string): void;
  resolve(end: FfmpegEnd): void;
  fail(error: Error): void;
}

function followChild(child: ChildProcess, { onStdout, resolve, fail }: Follow): void {
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', onStdout);
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-STDERR_KEPT);
  });
  // fluent-ffmpeg 2.1.3 throws in its own listener when a process cannot be started, which nobody could catch.
  child.removeAllListeners('error');
  child.on('error', error => {
    if (child.pid === undefined) fail(error);
  });
  child.once('close', (code, signal) => {
    resolve({ returncode: code ?? 128 + signalNumber(signal ?? ''), stderr });
  });
}
