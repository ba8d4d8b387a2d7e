import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../shared/package-root.ts';
import { ByteReader } from '../remote-files/byte-reader.ts';
import { type Decoded, readAnswer, type Wanted, writeRequest } from './decode-protocol.ts';

/** Also when the caller runs from the sources: Node 20 cannot run TypeScript, so the child is always the compiled one. */
const PROGRAM = fileURLToPath(new URL('dist/workers/video/decode-child.js', packageRoot));

/** Decodes pictures in a child process, which is started with the first and again after a crash. */
export class Decoder {
  #child: ChildProcess | undefined;
  #reader: ByteReader | undefined;
  #isClosed = false;

  /** One picture at a time. What is wrong with it is answered, never thrown. */
  async decode(frame: Buffer, wanted: Wanted): Promise<Decoded> {
    if (this.#isClosed) return { problem: 'was not decoded' };
    const { child, reader } = this.#start();
    for (const bytes of writeRequest(wanted, frame)) child.stdin?.write(bytes);
    try {
      return await readAnswer(reader);
    } catch {
      this.#stop();
      return { problem: 'cannot be decoded: the decoder crashed' };
    }
  }

  /** Ends the child; a picture that is being decoded is answered as a problem. */
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
    // Its end is seen on the pipe that answers come on.
    child.on('error', () => child.stdout?.destroy());
    child.stdin?.on('error', () => undefined);
    const reader = new ByteReader(child.stdout);
    this.#child = child;
    this.#reader = reader;
    return { child, reader };
  }
}
