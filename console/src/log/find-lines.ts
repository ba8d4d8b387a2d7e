import type { OutputLog } from './output-log.ts';

/** More are not counted. */
export const MAX_MATCHES = 100_000;

/** Finds the lines that hold a text, in any case, a slice of time at a time. New lines are looked through when they come. */
export class FindLines {
  readonly matches: number[] = [];
  readonly #log: OutputLog;
  readonly #needle: string;
  /** It goes on when bytes have come that are being read again. */
  isWaiting = false;
  #next = 0;
  /** Lines that were passed while they could still grow. */
  #passed: number[] = [];

  constructor(log: OutputLog, needle: string) {
    this.#log = log;
    this.#needle = needle.toLowerCase();
  }

  /** True once every line there is was looked through, but for those that may still grow. */
  get isDone(): boolean {
    const isThrough = this.#next >= this.#log.lineCount && this.#grown() === undefined;
    return isThrough || this.matches.length >= MAX_MATCHES;
  }

  /** Goes on for so many ms. */
  step(ms: number, now: () => number = () => performance.now()): void {
    const until = now() + ms;
    while (!this.isDone && now() < until) {
      const grown = this.#grown();
      const from = grown ?? this.#next;
      const lines = this.#log.plainLines(from);
      this.isWaiting = lines === undefined;
      if (!lines || lines.length === 0) return;
      if (grown === undefined) {
        this.#lookThrough(from, lines);
        this.#next += lines.length;
      } else {
        this.#lookThrough(from, lines.slice(0, 1));
        this.#passed = this.#passed.filter(line => line !== grown);
      }
    }
  }

  /** A line that was passed, and will not grow any more. */
  #grown(): number | undefined {
    const open = this.#log.openLines;
    return this.#passed.find(line => !open.includes(line));
  }

  #lookThrough(from: number, lines: string[]): void {
    const open = this.#log.openLines;
    for (const [i, line] of lines.entries()) {
      const n = from + i;
      if (open.includes(n)) this.#passed.push(n);
      else if (line.toLowerCase().includes(this.#needle))
        this.matches.splice(this.matches.findLastIndex(match => match < n) + 1, 0, n);
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
