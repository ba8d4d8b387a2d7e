import type { TransformCallback } from 'node:stream';
import { assertFits } from '../../shared/storage/free-space.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { PartMeter } from '../../shared/uploads/part-meter.ts';

/** Bytes of a body of unknown length after which the free space is checked again. */
const CHECK_EVERY_BYTES = 16 << 20;

/** Disk space reserved for one body. */
export interface DiskReservation {
  /** Call it before bytes are written. Await the promise, if one is returned, before writing; it rejects when the disk is full. */
  consume(bytes: number): Promise<void> | undefined;
  /** Call it when the body is stored, or has failed. */
  release(): void;
}

/**
 * Reservations of this process on the disk of the object store. Announced bytes that have not arrived yet count as used,
 * so that concurrent bodies do not rely on the same free space.
 */
export class DiskReservations {
  readonly #objects: Pick<ObjectStore, 'freeBytes'>;
  readonly #limit: number;
  #reserved = 0;

  /** `limit`: LIMIT_FREE_BYTES. */
  constructor(objects: Pick<ObjectStore, 'freeBytes'>, limit: number) {
    this.#objects = objects;
    this.#limit = limit;
  }

  /** Throws `insufficient_storage` when the bytes do not fit now. */
  async check(bytes: number): Promise<void> {
    this.#assertFits(await this.#readFree(), bytes);
  }

  /** Reserves the space for a body; undefined: of unknown length, which is checked while it arrives. Throws like check(). */
  async reserve(bytes: number | undefined): Promise<DiskReservation> {
    const free = await this.#readFree();
    // No await from here on: another body must not find the same space.
    this.#assertFits(free, bytes ?? 0);
    return bytes === undefined ? this.#checkPeriodically() : this.#reserveBytes(bytes);
  }

  async #readFree(): Promise<number | undefined> {
    return this.#limit === 0 ? undefined : this.#objects.freeBytes();
  }

  #assertFits(free: number | undefined, bytes: number): void {
    assertFits(free, { added: this.#reserved + bytes, limit: this.#limit });
  }

  #reserveBytes(bytes: number): DiskReservation {
    let left = bytes;
    this.#reserved += left;
    const giveBack = (count: number) => {
      left -= count;
      this.#reserved -= count;
    };
    return {
      consume: count => void giveBack(Math.min(count, left)),
      release: () => giveBack(left),
    };
  }

  #checkPeriodically(): DiskReservation {
    let unchecked = 0;
    return {
      consume: bytes => {
        unchecked += bytes;
        if (unchecked < CHECK_EVERY_BYTES) return undefined;
        unchecked = 0;
        return this.check(0);
      },
      release: () => {},
    };
  }
}

/** A PartMeter that consumes a reservation, and fails when the disk has no space for more. */
export class ReservedPartMeter extends PartMeter {
  readonly #reservation: DiskReservation;

  constructor({
    reservation,
    ...options
  }: ConstructorParameters<typeof PartMeter>[0] & { reservation: DiskReservation }) {
    super(options);
    this.#reservation = reservation;
  }

  override _transform(bytes: Buffer, encoding: BufferEncoding, done: TransformCallback): void {
    const write = () => super._transform(bytes, encoding, done);
    const checked = this.#reservation.consume(bytes.length);
    if (checked) checked.then(write, (error: Error) => done(error));
    else write();
  }
}
