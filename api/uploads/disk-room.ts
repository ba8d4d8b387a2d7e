import type { TransformCallback } from 'node:stream';
import { PartMeter } from '../../shared/part-meter.ts';
import { assertFits } from '../../shared/storage/free-space.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';

/** Of a body whose length nobody told, the disk is looked at again after so many bytes. */
const LOOK_EVERY = 16 << 20;

/** What one body may still take of the disk. */
export interface Hold {
  /** To be told of bytes that are about to be written; where there is something to wait for first, that. */
  came(bytes: number): Promise<void> | undefined;
  /** Call it when the body is stored, or given up. */
  release(): void;
}

/**
 * The disk of the object store, as far as this process fills it: what was announced and has not come yet counts as taken,
 * so that bodies which come at the same time do not each find the same room.
 */
export class DiskRoom {
  readonly #objects: Pick<ObjectStore, 'freeBytes'>;
  readonly #limit: number;
  #promised = 0;

  /** `limit`: LIMIT_FREE_BYTES. */
  constructor(objects: Pick<ObjectStore, 'freeBytes'>, limit: number) {
    this.#objects = objects;
    this.#limit = limit;
  }

  /** Throws `insufficient_storage` where there is no room for so many bytes now. */
  async check(bytes: number): Promise<void> {
    this.#assertFits(await this.#readFree(), bytes);
  }

  /** The same, and keeps the room for a body of so many bytes; for one of unknown length it is looked for as it comes. */
  async take(bytes: number | undefined): Promise<Hold> {
    const free = await this.#readFree();
    // In one go with what follows: nobody else finds the same room.
    this.#assertFits(free, bytes ?? 0);
    return bytes === undefined ? this.#watch() : this.#keep(bytes);
  }

  async #readFree(): Promise<number | undefined> {
    return this.#limit === 0 ? undefined : this.#objects.freeBytes();
  }

  #assertFits(free: number | undefined, bytes: number): void {
    assertFits(free, { added: this.#promised + bytes, limit: this.#limit });
  }

  #keep(bytes: number): Hold {
    let left = bytes;
    this.#promised += left;
    const give = (back: number) => {
      left -= back;
      this.#promised -= back;
    };
    return {
      came: count => void give(Math.min(count, left)),
      release: () => give(left),
    };
  }

  #watch(): Hold {
    let unseen = 0;
    return {
      came: bytes => {
        unseen += bytes;
        if (unseen < LOOK_EVERY) return undefined;
        unseen = 0;
        return this.check(0);
      },
      release: () => {},
    };
  }
}

/** A meter that tells of the bytes as they come, and fails where the disk has no room for more. */
export class HeldMeter extends PartMeter {
  readonly #hold: Hold;

  constructor({ hold, ...options }: ConstructorParameters<typeof PartMeter>[0] & { hold: Hold }) {
    super(options);
    this.#hold = hold;
  }

  override _transform(bytes: Buffer, encoding: BufferEncoding, done: TransformCallback): void {
    const goOn = () => super._transform(bytes, encoding, done);
    const looked = this.#hold.came(bytes.length);
    if (looked) looked.then(goOn, (error: Error) => done(error));
    else goOn();
  }
}
