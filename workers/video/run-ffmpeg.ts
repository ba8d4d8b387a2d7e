import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import type { Readable } from 'node:stream';
import createCommand, { type FfmpegCommand } from 'fluent-ffmpeg';
import { signalNumber } from '../runs/signal-number.ts';
import { closePipesAfterExit } from '../sandbox/close-pipes.ts';
import { confine, findIsolation, type Isolation } from '../sandbox/confine.ts';
import { diskFull, watchScratch } from '../sandbox/scratch-dir.ts';
import { isStopSignal, throwIfWorkerStops } from '../sandbox/stop-signals.ts';
import { watchMemory } from '../sandbox/watch-memory.ts';
import { printsTooMuch, tooLarge, tooSlow, type VideoLimits } from './video-limits.ts';

/** Characters of the end of standard error that are kept. */
const MAX_STDERR_LENGTH = 8192;
/** fluent-ffmpeg keeps what is printed until its line ends. FFmpeg's lines have some hundred characters. */
const MAX_LINE_LENGTH = 1 << 20;
/** FFmpeg's own exit code after a signal; where it failed it has printed why. */
const STOPPED = 255;

interface RunFfmpegOptions {
  ffmpeg: string;
  /** The options before the input. */
  inputOptions: readonly string[];
  /** Piped to standard input with backpressure, then destroyed. Its error ends ffmpeg. */
  input: Readable;
  outputs: readonly FfmpegOutput[];
  limits: VideoLimits;
  /** Receives ffmpeg's standard output in pieces. */
  onStdout(piece: string): void;
  signal?: AbortSignal;
}

interface FfmpegOutput {
  options: readonly string[];
  path: string;
}

export interface FfmpegEnd {
  /** Exit code, 128 + n for signal n, -1 if it could not be started. */
  returncode: number;
  /** The end of standard error, at most 8 KiB. */
  stderr: string;
}

/**
 * Runs ffmpeg, confined, through fluent-ffmpeg (decision 25). Settles at the process's exit; throws the input's error,
 * the signal's reason, or a limit's error. If this process dies, ffmpeg ends with its input.
 */
export async function runFfmpeg(options: RunFfmpegOptions): Promise<FfmpegEnd> {
  const { input, signal } = options;
  const isolation = await findIsolation();
  signal?.throwIfAborted();
  const running: Running = {};
  const end = (reason: unknown) => {
    running.reason ??= { error: reason };
    input.destroy();
    // The input may have been read to its end already.
    running.child?.kill('SIGKILL');
  };
  input.on('error', end);
  const onAbort = () => end(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const ended = await runCommand(options, { isolation, running, end });
    if (running.reason) throw running.reason.error;
    return ended;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    input.destroy();
  }
}

/** One ffmpeg: its process, and why it was ended where that was not by itself. */
interface Running {
  child?: ChildProcess;
  reason?: { error: unknown };
}

async function runCommand(
  options: RunFfmpegOptions,
  {
    isolation,
    running,
    end,
  }: { isolation: Isolation; running: Running; end(reason: unknown): void },
): Promise<FfmpegEnd> {
  const { limits, inputOptions, outputs } = options;
  const [program, ...words] = confine(
    [options.ffmpeg],
    {
      ...limits,
      processorSeconds: limits.seconds * availableParallelism(),
    },
    { isolation },
  );
  // `cwd` is missing in its types; another user might not reach this process's directory.
  const spawning = { source: options.input, stdoutLines: 1, cwd: '/' };
  const command = createCommand(spawning).inputOptions(...words, ...inputOptions);
  for (const output of outputs) command.output(output.path).outputOptions(...output.options);
  // The program that sets the limits; it answers no questions about formats and encoders.
  command.setFfmpegPath(program);
  Object.assign(
    command,
    withoutQuestions([...inputOptions, ...outputs.flatMap(({ options }) => options)]),
  );
  return new Promise(resolve => {
    const fail = (error: Error) => resolve({ returncode: -1, stderr: error.message });
    // Without a child it could not be started; with one its input has failed.
    command.on('error', (error: Error) =>
      running.child ? running.child.kill('SIGKILL') : fail(error),
    );
    command.once('start', () => {
      // Missing in the types; the only access to the exit code and to unbuffered stdout.
      const { ffmpegProc: started } = command as FfmpegCommand & { ffmpegProc: ChildProcess };
      running.child = started;
      closePipesAfterExit(started);
      let stderr = '';
      started.stdout?.setEncoding('utf8').on('data', options.onStdout);
      started.stderr?.setEncoding('utf8').on('data', (piece: string) => {
        stderr = (stderr + piece).slice(-MAX_STDERR_LENGTH);
      });
      // For a process that cannot be started, the listener of fluent-ffmpeg 2.1.3 throws an uncatchable error.
      started.removeAllListeners('error');
      started.on('error', error => {
        if (started.pid === undefined) fail(error);
      });
      for (const stream of [started.stdout, started.stderr])
        watchLines(stream, () => end(printsTooMuch(MAX_LINE_LENGTH)));
      started.once('close', async (code, signal) => {
        if (isStopSignal(signal) || (code === STOPPED && stderr === ''))
          await throwIfWorkerStops(options.signal).catch(end);
        resolve({ returncode: code ?? 128 + signalNumber(signal ?? ''), stderr });
      });
      if (running.reason) started.kill('SIGKILL');
      watch(started, limits, end);
    });
    command.run();
  });
}

/** Calls back for a line that is longer than any of ffmpeg's. */
function watchLines(stream: Readable | null, onTooLong: () => void): void {
  let length = 0;
  stream?.on('data', (piece: string) => {
    const end = Math.max(piece.lastIndexOf('\n'), piece.lastIndexOf('\r'));
    length = end < 0 ? length + piece.length : piece.length - end - 1;
    if (length > MAX_LINE_LENGTH) onTooLong();
  });
}

function watch(child: ChildProcess, limits: VideoLimits, end: (reason: unknown) => void): void {
  const timer = setTimeout(() => end(tooSlow(limits.seconds)), limits.seconds * 1_000);
  const watches = [
    watchMemory(child, limits.memory, () => end(tooLarge(limits.memory))),
    watchScratch(limits.keepFree, () => end(diskFull())),
  ];
  child.once('close', () => {
    clearTimeout(timer);
    for (const each of watches) clearInterval(each);
  });
}

/** fluent-ffmpeg would run ffmpeg, unconfined, to ask which formats and encoders it has. */
function withoutQuestions(words: string[]) {
  const named = words.filter((_, i) => words[i - 1] === '-f');
  const formats = Object.fromEntries(named.map(name => [name, { canMux: true, canDemux: true }]));
  type Answer = (error: null, found: object) => void;
  return {
    availableFormats: (answer: Answer) => answer(null, formats),
    availableEncoders: (answer: Answer) => answer(null, {}),
  };
}
