import { UserSemaphores } from '../concurrency/user-semaphores.ts';
import { type DiskReservation, DiskReservations } from './disk-reservations.ts';

/**
 * Bodies of one user that are stored at once: each takes a connection to the object store and, where its length is
 * unknown, 16 MiB. The user's other bodies wait, unread.
 */
const CONCURRENT_BODIES = 16;

/** What the routes that store bodies share: the places of each user, and the space on the store's disk. */
export class BodyStore {
  readonly #disk: DiskReservations;
  readonly #places = new UserSemaphores(CONCURRENT_BODIES);

  constructor(...reservations: ConstructorParameters<typeof DiskReservations>) {
    this.#disk = new DiskReservations(...reservations);
  }

  /** Throws `insufficient_storage` when the bytes do not fit now. */
  check(bytes: number): Promise<void> {
    return this.#disk.check(bytes);
  }

  /** Stores a body in the user's turn, on space that is reserved for its bytes (undefined: unknown). Throws like check(). */
  store<T>(
    user: string,
    bytes: number | undefined,
    write: (reservation: DiskReservation) => Promise<T>,
  ): Promise<T> {
    return this.#places.run(user, async () => {
      const reservation = await this.#disk.reserve(bytes);
      try {
        return await write(reservation);
      } finally {
        reservation.release();
      }
    });
  }
}
