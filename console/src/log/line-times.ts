import { GrowingNumbers } from './growing-numbers.ts';

/** When the lines of one stream came: of each time that was told, the first line that began then, 16 bytes. */
export class LineTimes {
  readonly #lines = new GrowingNumbers();
  readonly #times = new GrowingNumbers();

  /** The line, and those after it, began at this time, in ms since 1970. Times rise; one a second is kept. */
  add(line: number, time: number): void {
    const last = this.#times.length - 1;
    if (last >= 0 && time < this.#times.at(last) + 1_000) return;
    this.#lines.push(line);
    this.#times.push(time);
  }

  of(line: number): number | undefined {
    const found = this.#lines.lastNotAbove(line);
    return found < 0 ? undefined : this.#times.at(found);
  }

  /** The first line from a time on, which may not have come yet; undefined where all that came is older. */
  firstFrom(time: number): number | undefined {
    const next = this.#times.lastNotAbove(time - 1) + 1;
    return next < this.#times.length ? this.#lines.at(next) : undefined;
  }
}
