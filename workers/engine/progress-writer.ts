export interface Progress {
  /** 0 to 1. */
  progress: number;
  message: string | null;
}

/** Progress is written no more often than this. */
const EVERY_MS = 400;

/** Writes the newest progress of a job, one write at a time, so that none overtakes an earlier one. */
export class ProgressWriter {
  readonly #write: (progress: Progress) => Promise<void>;
  #next: Progress | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #isClosed = false;

  /** What `write` rejects is not written: the next progress says more. */
  constructor(write: (progress: Progress) => Promise<void>) {
    this.#write = write;
  }

  set(value: number, message?: string): void {
    this.#next = { progress: Math.min(1, Math.max(0, value)), message: message ?? null };
    this.#plan();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #plan(): void {
    if (!this.#next || this.#isWriting || this.#isClosed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#writeNext();
    }, EVERY_MS);
  }

  async #writeNext(): Promise<void> {
    const next = this.#next;
    if (!next) return;
    this.#next = undefined;
    this.#isWriting = true;
    await this.#write(next).catch(() => {});
    this.#isWriting = false;
    this.#plan();
  }
}
