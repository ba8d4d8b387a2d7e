import type { Tx } from '../database/connect.ts';
import type { Config } from '../settings/config.ts';
import { assertProjectQuota, chargeProjectQuota } from './project-quota.ts';
import { assertUserStorage, chargeUserStorage } from './user-storage.ts';

/** Bytes that a user is about to store in a project. */
export interface StorageCharge {
  project: string;
  user: string;
  /** Bytes more than before, in the project. */
  added: number;
  limits: StorageLimits;
}

export type StorageLimits = Pick<Config, 'LIMIT_PROJECT_BYTES' | 'LIMIT_USER_BYTES'>;

/** Throws `insufficient_storage` when a limit does not suffice. A check before bytes are received, without locks. */
export async function assertStorage(db: Tx, { project, user, added, limits }: StorageCharge) {
  await assertProjectQuota(db, { project, added, limit: limits.LIMIT_PROJECT_BYTES });
  if (added > 0) await assertUserStorage(db, { user, added, limit: limits.LIMIT_USER_BYTES });
}

/**
 * The same check inside the transaction of the write, after its rows are written: see chargeProjectQuota(). What does not make
 * the project larger is never refused.
 */
export async function chargeStorage(tx: Tx, { project, user, added, limits }: StorageCharge) {
  await chargeProjectQuota(tx, { project, added, limit: limits.LIMIT_PROJECT_BYTES });
  if (added > 0) await chargeUserStorage(tx, { user, added: 0, limit: limits.LIMIT_USER_BYTES });
}
