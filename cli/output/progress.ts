const REDRAW_MS = 200;

/** A line on a terminal that tells how far something is; nothing where standard error is none. */
export class ProgressLine {
  #drawnAt = 0;
  #isShown = false;

  /** `part` of 1. */
  show(part: number, text: string): void {
    this.showText(`${String(Math.floor(part * 100)).padStart(3)} %  ${text}`, part >= 1);
  }

  /** Where it is not known how much there is; at once, or a few times a second. */
  showText(text: string, atOnce = false): void {
    const now = performance.now();
    if (!process.stderr.isTTY || (!atOnce && now - this.#drawnAt < REDRAW_MS)) return;
    this.#drawnAt = now;
    this.#isShown = true;
    process.stderr.write(`\r\x1b[K${text}`);
  }

  end(): void {
    if (this.#isShown) process.stderr.write('\r\x1b[K');
    this.#isShown = false;
  }
}
