import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/process/package-root.ts';
import { saysUnloadable, UnloadableProgram } from '../engine/unloadable-program.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { closePipesAfterExit } from '../sandbox/close-pipes.ts';
import { confine, findIsolation, type Isolation } from '../sandbox/confine.ts';
import { watchMemory } from '../sandbox/watch-memory.ts';
import {
  type Decoded,
  type DecodeRequest,
  type PictureFormat,
  readAnswer,
  writeRequest,
} from './decode-protocol.ts';
import { MAX_PIXELS } from './frame-header.ts';

/** Always the compiled one, because Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/workers/video/decode-child.js', packageRoot));

/** Limit of seconds for one picture; sharp's own limit counts only while it makes pixels. */
const MAX_SECONDS = 90;
/** Limit of bytes: what the largest picture of any kind but AVIF needs; with ffmpeg's share below 2 GiB. */
const MAX_MEMORY = 15 * 2 ** 26;
/** Limit of processor seconds for all pictures of a video. */
const MAX_PROCESSOR_SECONDS = 86_400;
/** Limit of characters of what a child prints as it ends. */
const MAX_STDERR = 4_000;

interface Child {
  process: ChildProcess;
  reader: ByteReader;
  hasAnswered: boolean;
  /** The end of what it printed. */
  stderr: string;
  closed: Promise<void>;
}

/** Decodes pictures in a confined child process, started for the first one and after a crash. */
export class Decoder {
  #child: Child | undefined;
  #isClosed = false;
  readonly #background: string;

  /** `background`: `#rrggbb`, behind transparent pixels. */
  constructor(background = '#000000') {
    this.#background = background;
  }

  /**
   * Decodes one picture at a time; with more pixels than these only its size is read. Returns problems. Throws
   * UnloadableProgram. A child may be killed for no fault of the picture, as a kernel without memory does, so that only
   * a second crash, of a child that has seen no other picture, is a problem of it.
   */
  async decode(frame: Buffer, format: PictureFormat, pixels = MAX_PIXELS): Promise<Decoded> {
    const request = { frame, format, pixels };
    const first = await this.#decodeOnce(request);
    const decoded = 'crash' in first ? await this.#decodeOnce(request) : first;
    return 'crash' in decoded ? { problem: `cannot be decoded: ${decoded.crash}` } : decoded;
  }

  async #decodeOnce(request: DecodeRequest): Promise<Decoded | { crash: string }> {
    const isolation = await findIsolation();
    if (this.#isClosed) return { problem: 'was not decoded' };
    const child = this.#start(isolation);
    let reason = 'the decoder crashed';
    const end = (why: string) => {
      reason = why;
      child.process.kill('SIGKILL');
    };
    const timer = setTimeout(end, MAX_SECONDS * 1_000, `it took more than ${MAX_SECONDS} s`);
    const watch = watchMemory(child.process, MAX_MEMORY, () => end('it needs too much memory'));
    for (const bytes of writeRequest(request)) child.process.stdin?.write(bytes);
    try {
      const answer = await readAnswer(child.reader, request);
      child.hasAnswered = true;
      return answer;
    } catch {
      this.#stop();
      await child.closed;
      // Not of a child that has seen a frame: a hostile one could print that.
      if (!child.hasAnswered && saysUnloadable(child.stderr))
        throw new UnloadableProgram(`the decoder could not load its modules: ${child.stderr}`);
      return { crash: reason };
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
    }
  }

  /** Kills the child; a picture that is being decoded becomes a problem. */
  close(): void {
    this.#isClosed = true;
    this.#stop();
  }

  #stop(): void {
    this.#child?.process.kill('SIGKILL');
    this.#child = undefined;
  }

  #start(isolation: Isolation): Child {
    if (this.#child) return this.#child;
    const limits = {
      memory: MAX_MEMORY,
      processorSeconds: MAX_PROCESSOR_SECONDS,
      fileBytes: 0,
    };
    const [program, ...args] = confine([process.execPath, PROGRAM, this.#background], limits, {
      isolation,
      // libvips would put large pictures into files, which it may not write.
      env: { VIPS_DISC_THRESHOLD: `${MAX_MEMORY}` },
    });
    const started = spawn(program, args, { stdio: 'pipe', cwd: '/' });
    closePipesAfterExit(started);
    // readAnswer() fails when this pipe ends.
    started.on('error', () => started.stdout.destroy());
    started.stdin.on('error', () => undefined);
    const closed = new Promise<void>(resolve => {
      for (const event of ['close', 'error']) started.once(event, () => resolve());
    });
    const reader = new ByteReader(started.stdout);
    const child = { process: started, reader, hasAnswered: false, stderr: '', closed };
    started.stderr.setEncoding('utf8').on('data', (piece: string) => {
      child.stderr = (child.stderr + piece).slice(-MAX_STDERR);
    });
    this.#child = child;
    return child;
  }
}
