import { WindlassError } from '../../shared/errors/errors.ts';

/** Looked at again after so many bytes, and after so many milliseconds. */
const CHECK_BYTES = 4 << 20;
const CHECK_MS = 1_000;

/**
 * Whether LIMIT_FREE_BYTES and LIMIT_USER_BYTES leave room for more output. Answers at once from the last look: later
 * pieces would overtake one that waits.
 */
export class OutputRoom {
  readonly #assertRoom: () => Promise<void>;
  #unchecked = 0;
  #checkedAt = 0;
  #shortage: WindlassError | undefined;

  private constructor(assertRoom: () => Promise<void>) {
    this.#assertRoom = assertRoom;
  }

  /** `assertRoom` looks, and throws `insufficient_storage` where there is none. */
  static async open(assertRoom: () => Promise<void>): Promise<OutputRoom> {
    const room = new OutputRoom(assertRoom);
    await room.#look();
    return room;
  }

  /** Throws `insufficient_storage` from the first shortage on: output with a gap is worse than none. */
  admit(bytes: number): void {
    if (this.#shortage) throw this.#shortage;
    this.#unchecked += bytes;
    const isDue = this.#unchecked >= CHECK_BYTES || performance.now() - this.#checkedAt >= CHECK_MS;
    if (isDue) void this.#look();
  }

  async #look(): Promise<void> {
    this.#unchecked = 0;
    this.#checkedAt = performance.now();
    try {
      await this.#assertRoom();
    } catch (error) {
      // If it cannot be told, the write itself will fail.
      if (error instanceof WindlassError && error.code === 'insufficient_storage')
        this.#shortage ??= error;
    }
  }
}
