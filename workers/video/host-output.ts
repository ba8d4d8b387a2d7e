import type { WindlassError } from '../../shared/errors/errors.ts';
import type { RunEnd } from '../runs/run-state.ts';
import { describeEncoding, FfmpegProgress } from './ffmpeg-progress.ts';
import { toHostVideoError } from './video-error.ts';

/** Limit of bytes of ffmpeg's last messages for the error's record. */
export const MAX_STDERR_BYTES = 8 << 10;
/** Limit of bytes of the script's first and of its last lines; ffmpeg's progress comes between them. */
const MAX_STDOUT_BYTES = 8 << 10;

/**
 * Parses the output of reportFile()'s script, from its first byte again after each reconnection. Keeps a bounded part,
 * whatever a host prints.
 */
export class HostOutput {
  readonly #frames: number;
  readonly #onProgress: (fraction: number, message: string) => void;
  #progress = new FfmpegProgress();
  #first = '';
  #last = '';
  #stderr = '';

  constructor(frames: number, onProgress: (fraction: number, message: string) => void) {
    this.#frames = frames;
    this.#onProgress = onProgress;
  }

  begin(): void {
    this.#progress = new FfmpegProgress();
    this.#first = '';
    this.#last = '';
    this.#stderr = '';
  }

  take(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    const text = bytes.toString('latin1');
    if (stream === 'stderr') {
      this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_BYTES);
      return;
    }
    if (this.#first.length < MAX_STDOUT_BYTES)
      this.#first = (this.#first + text).slice(0, MAX_STDOUT_BYTES);
    this.#last = (this.#last + text).slice(-MAX_STDOUT_BYTES);
    if (!this.#progress.add(text)) return;
    const { frames } = this.#progress;
    const message = describeEncoding(frames, { length: this.#frames });
    this.#onProgress(frames / this.#frames, message);
  }

  get directory(): string {
    return Buffer.from(/^run=(.*)$/m.exec(this.#first)?.[1] ?? '', 'latin1').toString('utf8');
  }

  get size(): number {
    return Number(/^size=(\d+)\n$/m.exec(this.#last)?.[1]);
  }

  /** Sizes of poster and sprite; undefined where they were not made. */
  get stills(): [number, number] | undefined {
    const [, poster, sprite] = /^stills=(\d+) (\d+)\nsize=/m.exec(this.#last) ?? [];
    const sizes: [number, number] = [Number(poster), Number(sprite)];
    return sizes.every(size => size > 0) ? sizes : undefined;
  }

  failureOf({ code }: RunEnd): WindlassError | undefined {
    if (code === 0 && this.size > 0) return undefined;
    const stderr = Buffer.from(this.#stderr, 'latin1').toString('utf8');
    return toHostVideoError({ returncode: code, stderr });
  }
}
