import { WindlassError } from '../../shared/errors/errors.ts';
import { sleep } from '../../shared/process/abort.ts';

/** Looked at again after so many bytes, and after so many milliseconds. */
const CHECK_BYTES = 4 << 20;
const CHECK_MS = 1_000;
/** Stored although the disk is short of space: a command that is about to end does end. */
const SPARE_BYTES = 256 << 10;

interface OutputRoomOptions {
  /** These look, and throw `insufficient_storage` where LIMIT_USER_BYTES or LIMIT_FREE_BYTES leaves no room. */
  assertUser(): Promise<void>;
  assertDisk(): Promise<void>;
  /** Who writes the output waits for space on the disk; others are refused (decision 60). */
  waitsForDisk: boolean;
}

/**
 * Whether LIMIT_USER_BYTES and LIMIT_FREE_BYTES leave room for more output. Answers at once from the last look: later
 * pieces would overtake one that waits.
 */
export class OutputRoom {
  readonly #options: OutputRoomOptions;
  #unchecked = 0;
  #checkedAt = 0;
  #refusal: WindlassError | undefined;
  #diskShortage: WindlassError | undefined;
  #spare = SPARE_BYTES;

  private constructor(options: OutputRoomOptions) {
    this.#options = options;
  }

  static async open(options: OutputRoomOptions): Promise<OutputRoom> {
    const room = new OutputRoom(options);
    await room.#look();
    return room;
  }

  /** Throws `insufficient_storage` from the first refusal on: output with a gap is worse than none. */
  admit(bytes: number): void {
    if (this.#refusal) throw this.#refusal;
    if (this.#diskShortage) this.#spare -= bytes;
    this.#unchecked += bytes;
    const isDue = this.#unchecked >= CHECK_BYTES || performance.now() - this.#checkedAt >= CHECK_MS;
    if (isDue) void this.#look();
  }

  /** The disk is short of space. */
  get isDiskShort(): boolean {
    return this.#diskShortage !== undefined;
  }

  /** The same, once what is spared for commands that are about to end was used up: more output is to come later. */
  get shortage(): WindlassError | undefined {
    return this.#spare > 0 ? undefined : this.#diskShortage;
  }

  /** Waits while there is a shortage, until the signal is aborted. */
  async awaitDisk(signal: AbortSignal): Promise<void> {
    while (this.shortage && !signal.aborted) {
      await sleep(signal, CHECK_MS);
      await this.#look();
    }
  }

  /** Whether a write that the store refused is to be tried again, before which no more output is to come. */
  mayRetry(error: unknown): boolean {
    if (!this.#options.waitsForDisk || !isNoRoom(error)) return false;
    this.#diskShortage = error;
    this.#spare = 0;
    return true;
  }

  async #look(): Promise<void> {
    this.#unchecked = 0;
    this.#checkedAt = performance.now();
    const { assertUser, assertDisk, waitsForDisk } = this.#options;
    const looks = [assertUser(), assertDisk()].map(look => look.then(noShortage, toShortage));
    const [refusal, shortage] = await Promise.all(looks);
    this.#refusal ??= refusal;
    if (waitsForDisk) this.#diskShortage = shortage;
    else this.#refusal ??= shortage;
    if (!shortage) this.#spare = SPARE_BYTES;
  }
}

const isNoRoom = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'insufficient_storage';
const noShortage = (): undefined => undefined;
/** If it cannot be told, the write itself will fail. */
const toShortage = (error: unknown) => (isNoRoom(error) ? error : undefined);
