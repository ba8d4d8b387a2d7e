import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/package-root.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { type Decoded, type PictureFormat, readAnswer, writeRequest } from './decode-protocol.ts';

/** Always the compiled one, because Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/workers/video/decode-child.js', packageRoot));

/** Decodes pictures in a child process, which it starts for the first one and again after a crash. */
export class Decoder {
  #child: ChildProcess | undefined;
  #reader: ByteReader | undefined;
  #isClosed = false;

  /** Decodes one picture at a time. Never throws: a problem is returned. */
  async decode(frame: Buffer, format: PictureFormat): Promise<Decoded> {
    if (this.#isClosed) return { problem: 'was not decoded' };
    const { child, reader } = this.#start();
    for (const bytes of writeRequest(format, frame)) child.stdin?.write(bytes);
    try {
      return await readAnswer(reader);
    } catch {
      this.#stop();
      return { problem: 'cannot be decoded: the decoder crashed' };
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

  #start(): { child: ChildProcess; reader: ByteReader } {
    if (this.#child && this.#reader) return { child: this.#child, reader: this.#reader };
    const child = spawn(process.execPath, [PROGRAM], { stdio: ['pipe', 'pipe', 'ignore'] });
    // readAnswer() fails when this pipe ends.
    child.on('error', () => child.stdout?.destroy());
    child.stdin?.on('error', () => undefined);
    const reader = new ByteReader(child.stdout);
    this.#child = child;
    this.#reader = reader;
    return { child, reader };
  }
}
