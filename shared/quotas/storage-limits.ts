import type { Tx } from '../database/connect.ts';
import type { Config } from '../settings/config.ts';
import { assertProjectQuota, chargeProjectQuota } from './project-quota.ts';
import { assertUserStorage, chargeUserStorage } from './user-storage.ts';

/** Bytes that a user is about to store in a project. */
interface StorageCharge {
  project: string;
  user: string;
  /** Bytes that the project stores more than before. */
  added: number;
  /** Bytes that the user stores more than before. Default: `added`. See growthOf(). */
  addedByUser?: number;
  limits: StorageLimits;
}

export type StorageLimits = Pick<Config, 'LIMIT_PROJECT_BYTES' | 'LIMIT_USER_BYTES'>;

/** Bytes in a project, which count for who stored them. */
export interface Stored {
  size: number;
  /** Null: for nobody. */
  storedBy: string | null;
}

export type StorageGrowth = Required<Pick<StorageCharge, 'added' | 'addedByUser'>>;

/** Replacing another user's bytes adds all new bytes to the user who stores them, and only the difference to the project. */
export function growthOf({ size, storedBy }: Stored, before: Stored | undefined): StorageGrowth {
  const own = before?.storedBy === storedBy ? before.size : 0;
  return { added: size - (before?.size ?? 0), addedByUser: size - own };
}

/** Throws `insufficient_storage` when a limit does not suffice. A check before bytes are received, without locks. */
export async function assertStorage(db: Tx, { project, user, added, limits }: StorageCharge) {
  await assertProjectQuota(db, { project, added, limit: limits.LIMIT_PROJECT_BYTES });
  if (added > 0) await assertUserStorage(db, { user, added, limit: limits.LIMIT_USER_BYTES });
}

/**
 * Like assertStorage(), inside the transaction of the write, after its rows are written: see chargeProjectQuota(). What makes
 * neither the project nor what the user stores larger is never refused.
 */
export async function chargeStorage(tx: Tx, charge: StorageCharge) {
  const { project, user, added, addedByUser = added, limits } = charge;
  await chargeProjectQuota(tx, { project, added, limit: limits.LIMIT_PROJECT_BYTES });
  if (addedByUser > 0)
    await chargeUserStorage(tx, { user, added: 0, limit: limits.LIMIT_USER_BYTES });
}
