import { GrowingNumbers } from './growing-numbers.ts';

export const STREAMS = ['stdout', 'stderr'] as const;
export type StreamName = (typeof STREAMS)[number];

/** In which order the lines of both streams came: runs of lines of one stream, each three numbers. */
export class MergedLines {
  /** The first line of each run, of all lines. */
  readonly #firsts = new GrowingNumbers();
  /** The first line of each run, of its stream's lines. */
  readonly #firstsOfStream = new GrowingNumbers();
  readonly #streams = new GrowingNumbers();
  readonly #counts: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  readonly #lasts: Record<StreamName, number> = { stdout: -1, stderr: -1 };

  get length(): number {
    return this.#counts.stdout + this.#counts.stderr;
  }

  add(stream: StreamName, lines: number): void {
    if (lines === 0) return;
    const code = STREAMS.indexOf(stream);
    const last = this.#streams.length - 1;
    if (last < 0 || this.#streams.at(last) !== code) {
      this.#firsts.push(this.length);
      this.#firstsOfStream.push(this.#counts[stream]);
      this.#streams.push(code);
    }
    this.#counts[stream] += lines;
    this.#lasts[stream] = this.length - 1;
  }

  /** Which of all lines a stream's last one is. */
  lastOf(stream: StreamName): number {
    return this.#lasts[stream];
  }

  /** Which line of which stream it is, and how many of its run follow it. */
  at(line: number): { stream: StreamName; line: number; left: number } {
    const run = this.#firsts.lastNotAbove(line);
    const first = this.#firsts.at(run);
    const isLast = run === this.#firsts.length - 1;
    const end = isLast ? this.length : this.#firsts.at(run + 1);
    return {
      stream: STREAMS[this.#streams.at(run)] ?? 'stdout',
      line: this.#firstsOfStream.at(run) + line - first,
      left: end - line - 1,
    };
  }

  /** Which of all lines a stream's line is. Looks through the runs. */
  find(stream: StreamName, line: number): number {
    const code = STREAMS.indexOf(stream);
    let found = 0;
    for (let run = 0; run < this.#streams.length; run++) {
      if (this.#streams.at(run) !== code) continue;
      const into = line - this.#firstsOfStream.at(run);
      if (into < 0) break;
      found = this.#firsts.at(run) + into;
    }
    return found;
  }
}
