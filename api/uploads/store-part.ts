import type { IncomingMessage } from 'node:http';
import { WindlassError } from '../../shared/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { type PartMeter, partTooLarge } from '../../shared/part-meter.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { StoredPart } from '../../shared/uploads.ts';
import { type DiskReservation, ReservedPartMeter } from './disk-reservations.ts';
import { pipeBody } from './pipe-body.ts';

export type StoredBytes = Pick<StoredPart, 'object' | 'size' | 'digest'>;

export interface StoreOptions {
  objects: ObjectStore;
  uid: string;
  /** Bytes that a part may have. */
  limit: number;
  /** SHA-256 that the bytes must have. */
  expected?: Buffer;
  /** What they may take of the disk. */
  reservation: DiskReservation;
  /** See pipeBody(). */
  windowMs: number;
}

/** Streams a request's body into the store, under a key of its own that nothing refers to yet. */
export async function storeBody(
  req: IncomingMessage,
  { objects, uid, limit, expected, reservation, windowMs }: StoreOptions,
): Promise<StoredBytes> {
  const given = req.headers['content-length'];
  const size = given === undefined ? undefined : Number(given);
  const meter = new ReservedPartMeter({ limit, expected, reservation });
  const stop = pipeBody(req, meter, windowMs);
  try {
    return await storeMetered(objects, uid, { meter, size });
  } finally {
    stop();
  }
}

/** RFC 9110, 8.6: a length that is announced is refused before the body is read. `around` the part may be so much more. */
export function checkAnnouncedSize(req: IncomingMessage, limit: number, around: number): void {
  if (Number(req.headers['content-length'] ?? 0) > limit + around) throw partTooLarge(limit);
}

/** Stores what comes out of the meter; where the meter failed for a reason of ours, that is what is thrown. */
export async function storeMetered(
  objects: ObjectStore,
  uid: string,
  { meter, size }: { meter: PartMeter; size?: number },
): Promise<StoredBytes> {
  const object = newObjectKey('uploads', uid);
  // It may fail before the store listens to it.
  meter.on('error', () => {});
  try {
    await objects.put(object, meter, { size });
  } catch (error) {
    throw meter.errored instanceof WindlassError ? meter.errored : error;
  }
  return { object, size: meter.size, digest: meter.digest };
}
