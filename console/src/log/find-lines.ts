import type { OutputLog } from './output-log.ts';

/** More are not counted. */
export const MOST_MATCHES = 100_000;

/** Finds the lines that hold a text, in any case, a slice of time at a time. New lines are looked through when they come. */
export class FindLines {
  readonly matches: number[] = [];
  readonly #log: OutputLog;
  readonly #needle: string;
  /** It goes on when bytes have come that are being read again. */
  isWaiting = false;
  #next = 0;

  constructor(log: OutputLog, needle: string) {
    this.#log = log;
    this.#needle = needle.toLowerCase();
  }

  /** True once every line there is was looked through, but for a last one that may still grow. */
  get isDone(): boolean {
    const { lineCount, isWhole } = this.#log;
    const ready = isWhole ? lineCount : lineCount - 1;
    return this.#next >= ready || this.matches.length >= MOST_MATCHES;
  }

  /** Goes on for so many ms. */
  step(ms: number, now: () => number = () => performance.now()): void {
    const until = now() + ms;
    while (!this.isDone && now() < until) {
      const lines = this.#log.plainLines(this.#next);
      this.isWaiting = lines === undefined;
      if (!lines || lines.length === 0) return;
      for (const [i, line] of lines.entries())
        if (line.toLowerCase().includes(this.#needle)) this.matches.push(this.#next + i);
      this.#next += lines.length;
    }
  }
}

/** Where in a line the text stands, as pairs of indexes. */
export function findInText(text: string, needle: string): [number, number][] {
  const found: [number, number][] = [];
  if (needle === '') return found;
  const [lower, wanted] = [text.toLowerCase(), needle.toLowerCase()];
  for (let at = lower.indexOf(wanted); at !== -1; at = lower.indexOf(wanted, at + wanted.length))
    found.push([at, at + wanted.length]);
  return found;
}
