import type { IncomingMessage } from 'node:http';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { type PartMeter, partTooLarge } from '../../shared/uploads/part-meter.ts';
import type { StoredPart } from '../../shared/uploads/uploads.ts';
import { type DiskReservation, ReservedPartMeter } from './disk-reservations.ts';
import { pipeBody } from './pipe-body.ts';

export type StoredBytes = Pick<StoredPart, 'object' | 'size' | 'digest'>;

export interface StoreOptions {
  objects: ObjectStore;
  /** A new one. */
  key: string;
  /** Largest part, in bytes. */
  limit: number;
  /** SHA-256 from Content-Digest. */
  expected?: Buffer;
  /** Disk space for the part. */
  reservation: DiskReservation;
  /** See pipeBody(). */
  windowMs: number;
}

/** Streams a request's body into the store, under a new key that no row refers to yet. */
export async function storeBody(
  req: IncomingMessage,
  { objects, key, limit, expected, reservation, windowMs }: StoreOptions,
): Promise<StoredBytes> {
  const given = req.headers['content-length'];
  const size = given === undefined ? undefined : Number(given);
  const meter = new ReservedPartMeter({ limit, expected, reservation });
  const stop = pipeBody(req, meter, windowMs);
  try {
    return await storeMetered(objects, key, { meter, size });
  } finally {
    stop();
  }
}

/** Refuses a too large Content-Length before the body is read; `most`: bytes of a body whose part has `limit`. */
export function checkAnnouncedSize(req: IncomingMessage, limit: number, most = limit): void {
  if (Number(req.headers['content-length'] ?? 0) > most) throw partTooLarge(limit);
}

/** Stores the meter's output. When the meter failed with a WindlassError, throws that instead of the store's error. */
export async function storeMetered(
  objects: ObjectStore,
  key: string,
  { meter, size }: { meter: PartMeter; size?: number },
): Promise<StoredBytes> {
  // It may fail before the store adds its listener.
  meter.on('error', () => {});
  try {
    await objects.put(key, meter, { size });
  } catch (error) {
    throw meter.errored instanceof WindlassError ? meter.errored : error;
  }
  return { object: key, size: meter.size, digest: meter.digest };
}
