import { WindlassError } from '../../shared/errors/errors.ts';

/** Looked at again after so many bytes, and after so many milliseconds. */
const CHECK_BYTES = 4 << 20;
const CHECK_MS = 1_000;

interface OutputRoomOptions {
  /** These look, and throw `insufficient_storage` where LIMIT_USER_BYTES or LIMIT_FREE_BYTES leaves no room. */
  assertUser(): Promise<void>;
  assertDisk(): Promise<void>;
}

/**
 * Whether LIMIT_USER_BYTES and LIMIT_FREE_BYTES leave room for more output. Answers at once from the last look: later
 * pieces would overtake one that waits.
 */
export class OutputRoom {
  readonly #options: OutputRoomOptions;
  #unchecked = 0;
  #checkedAt = 0;
  #overLimit: WindlassError | undefined;
  #diskShortage: WindlassError | undefined;

  private constructor(options: OutputRoomOptions) {
    this.#options = options;
  }

  static async open(options: OutputRoomOptions): Promise<OutputRoom> {
    const room = new OutputRoom(options);
    await room.#look();
    return room;
  }

  /** Throws `insufficient_storage` from the first shortage on: output with a gap is worse than none. */
  admit(bytes: number): void {
    const shortage = this.#overLimit ?? this.#diskShortage;
    if (shortage) throw shortage;
    this.#unchecked += bytes;
    const isDue = this.#unchecked >= CHECK_BYTES || performance.now() - this.#checkedAt >= CHECK_MS;
    if (isDue) void this.#look();
  }

  /** The disk is short of space, which passes. */
  get isDiskShort(): boolean {
    return this.#diskShortage !== undefined;
  }

  /** Whether it is for the disk that a write was refused, by the store or by admit(). */
  isForDisk(error: unknown): boolean {
    return isNoRoom(error) && error !== this.#overLimit;
  }

  async #look(): Promise<void> {
    this.#unchecked = 0;
    this.#checkedAt = performance.now();
    const { assertUser, assertDisk } = this.#options;
    this.#diskShortage ??= await shortageOf(assertDisk);
    this.#overLimit ??= await shortageOf(assertUser);
  }
}

const isNoRoom = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'insufficient_storage';

async function shortageOf(look: () => Promise<void>): Promise<WindlassError | undefined> {
  try {
    await look();
  } catch (error) {
    // If it cannot be told, the write itself will fail.
    if (isNoRoom(error)) return error;
  }
  return undefined;
}
