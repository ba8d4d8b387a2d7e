import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import createCommand, { type FfmpegCommand } from 'fluent-ffmpeg';
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
  const onAbort = () => input.destroy(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
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
  command.setFfmpegPath(options.ffmpeg);
  let child: ChildProcess | undefined;
  let closed: Promise<unknown> | undefined;
  let stderr = '';
  command.once('start', () => {
    // The types leave it out; it is the only way to the exit code and to standard output as it comes.
    child = (command as FfmpegCommand & { ffmpegProc: ChildProcess }).ffmpegProc;
    closed = once(child, 'close').catch(() => undefined);
    child.stdout?.setEncoding('utf8').on('data', options.onStdout);
    child.stderr?.on('data', (piece: string) => {
      stderr = (stderr + piece).slice(-STDERR_KEPT);
    });
    // The input failed before there was a process that fluent-ffmpeg could end for it.
    if (hasFailed()) child.kill('SIGKILL');
  });
  const problem = await new Promise<Error | undefined>(resolve => {
    command.once('end', () => resolve(undefined));
    command.on('error', (error: Error) => resolve(error));
    command.run();
  });
  if (!child || child.pid === undefined) return { returncode: -1, stderr: problem?.message ?? '' };
  // Nobody wants what it would still make of an input that failed; after its end this does nothing.
  if (problem) child.kill('SIGKILL');
  await closed;
  return { returncode: child.exitCode ?? 128 + signalNumber(child.signalCode), stderr };
}

function signalNumber(name: NodeJS.Signals | null): number {
  return name ? constants.signals[name] : 0;
}
