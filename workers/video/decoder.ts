import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/process/package-root.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { closePipesAfterExit } from '../sandbox/close-pipes.ts';
import { confine, findIsolation, type Isolation } from '../sandbox/confine.ts';
import { watchMemory } from '../sandbox/watch-memory.ts';
import { type Decoded, type PictureFormat, readAnswer, writeRequest } from './decode-protocol.ts';
import { MAX_PIXELS } from './frame-header.ts';

/** Always the compiled one, because Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/workers/video/decode-child.js', packageRoot));

/** Limit of seconds for one picture; sharp's own limit counts only while it makes pixels. */
const MAX_SECONDS = 90;
/** Limit of bytes: what the largest picture of any kind but AVIF needs; with ffmpeg's share below 2 GiB. */
const MAX_MEMORY = 15 * 2 ** 26;
/** Limit of processor seconds for all pictures of a video. */
const MAX_PROCESSOR_SECONDS = 86_400;

/** Decodes pictures in a confined child process, started for the first one and after a crash. */
export class Decoder {
  #child: ChildProcess | undefined;
  #reader: ByteReader | undefined;
  #isClosed = false;
  readonly #background: string;

  /** `background`: `#rrggbb`, behind transparent pixels. */
  constructor(background = '#000000') {
    this.#background = background;
  }

  /**
   * Decodes one picture at a time; with more pixels than these only its size is read. Returns problems, never throws.
   */
  async decode(frame: Buffer, format: PictureFormat, pixels = MAX_PIXELS): Promise<Decoded> {
    const isolation = await findIsolation();
    if (this.#isClosed) return { problem: 'was not decoded' };
    const { child, reader } = this.#start(isolation);
    let reason = 'the decoder crashed';
    const end = (why: string) => {
      reason = why;
      child.kill('SIGKILL');
    };
    const timer = setTimeout(end, MAX_SECONDS * 1_000, `it took more than ${MAX_SECONDS} s`);
    const watch = watchMemory(child, MAX_MEMORY, () => end('it needs too much memory'));
    for (const bytes of writeRequest({ frame, format, pixels })) child.stdin?.write(bytes);
    try {
      return await readAnswer(reader, { format, pixels });
    } catch {
      this.#stop();
      return { problem: `cannot be decoded: ${reason}` };
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
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
    this.#reader = undefined;
  }

  #start(isolation: Isolation): { child: ChildProcess; reader: ByteReader } {
    if (this.#child && this.#reader) return { child: this.#child, reader: this.#reader };
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
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], cwd: '/' });
    closePipesAfterExit(child);
    // readAnswer() fails when this pipe ends.
    child.on('error', () => child.stdout?.destroy());
    child.stdin?.on('error', () => undefined);
    const reader = new ByteReader(child.stdout);
    this.#child = child;
    this.#reader = reader;
    return { child, reader };
  }
}
