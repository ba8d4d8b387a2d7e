import type { TransformCallback } from 'node:stream';
import { assertFits } from '../../shared/storage/free-space.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { PartMeter } from '../../shared/uploads/part-meter.ts';

/**
 * What a body reserves of its bytes that have not arrived: whoever announces many and sends none keeps no more from the
 * others, for each of the 16 bodies that a user may send at once.
 */
const RESERVED_BYTES = 64 << 20;
/** Bytes of a body whose rest is not all reserved, after which the free space is checked again. */
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
 * up to 64 MiB of each body, so that concurrent bodies do not rely on the same free space.
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

  /**
   * Reserves the space for a body whose bytes fit now; undefined: of unknown length. What is not reserved is checked while
   * it arrives. Throws like check().
   */
  async reserve(bytes: number | undefined): Promise<DiskReservation> {
    const free = await this.#readFree();
    // No await from here on: another body must not find the same space.
    this.#assertFits(free, bytes ?? 0);
    let left = bytes ?? 0;
    let reserved = 0;
    let unchecked = 0;
    const keep = (count: number) => {
      this.#reserved += count - reserved;
      reserved = count;
    };
    const isReserved = () => bytes !== undefined && left <= RESERVED_BYTES;
    keep(Math.min(left, RESERVED_BYTES));
    return {
      consume: count => {
        left = Math.max(0, left - count);
        keep(Math.min(left, RESERVED_BYTES));
        unchecked += count;
        if (isReserved() || unchecked < CHECK_EVERY_BYTES) return undefined;
        unchecked = 0;
        return this.check(0);
      },
      release: () => keep(0),
    };
  }

  async #readFree(): Promise<number | undefined> {
    return this.#limit === 0 ? undefined : this.#objects.freeBytes();
  }

  #assertFits(free: number | undefined, bytes: number): void {
    assertFits(free, { added: this.#reserved + bytes, limit: this.#limit });
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
