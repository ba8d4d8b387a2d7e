import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import createCommand, { type FfmpegCommand } from 'fluent-ffmpeg';
import { signalNumber } from '../runs/signal-number.ts';
import type { FfmpegArguments } from './ffmpeg-arguments.ts';

/** Of the end of standard error. */
const MAX_STDERR_LENGTH = 8192;

export interface RunFfmpegOptions {
  ffmpeg: string;
  arguments: Pick<FfmpegArguments, 'input' | 'output'>;
  /** Piped to standard input with backpressure, then destroyed. Its error ends ffmpeg. */
  input: Readable;
  outputPath: string;
  /** Receives ffmpeg's standard output in pieces. */
  onStdout(piece: string): void;
  signal?: AbortSignal;
}

export interface FfmpegEnd {
  /** Exit code, 128 + n for signal n, -1 if it could not be started. */
  returncode: number;
  /** The end of standard error, at most 8 KiB. */
  stderr: string;
}

/**
 * Runs ffmpeg through fluent-ffmpeg, which only this file uses. Settles when the process has exited; throws the input's
 * error or the signal's reason. If this process dies, ffmpeg ends with its input.
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
  // fluent-ffmpeg keeps this path globally: concurrent encodings must use the same one.
  command.setFfmpegPath(options.ffmpeg);
  let child: ChildProcess | undefined;
  return new Promise(resolve => {
    const fail = (error: Error) => resolve({ returncode: -1, stderr: error.message });
    // Without a child it could not be started; with one its input has failed.
    command.on('error', (error: Error) => (child ? child.kill('SIGKILL') : fail(error)));
    command.once('start', () => {
      // Missing in the types; the only way to the exit code and to unbuffered standard output.
      const { ffmpegProc: started } = command as FfmpegCommand & { ffmpegProc: ChildProcess };
      child = started;
      let stderr = '';
      started.stdout?.setEncoding('utf8').on('data', options.onStdout);
      started.stderr?.setEncoding('utf8').on('data', (piece: string) => {
        stderr = (stderr + piece).slice(-MAX_STDERR_LENGTH);
      });
      // When a process cannot be started, the listener of fluent-ffmpeg 2.1.3 throws an error that cannot be caught.
      started.removeAllListeners('error');
      started.on('error', error => {
        if (started.pid === undefined) fail(error);
      });
      started.once('close', (code, signal) => {
        resolve({ returncode: code ?? 128 + signalNumber(signal ?? ''), stderr });
      });
      if (hasFailed()) started.kill('SIGKILL');
    });
    command.run();
  });
}
