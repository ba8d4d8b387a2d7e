import { recordAudit } from '../../shared/audit/audit.ts';
import type { Database } from '../../shared/database/connect.ts';
import { LeakyBuckets } from '../concurrency/leaky-buckets.ts';

/** Entries of one user, in this process: a user with many addresses would fill the audit. */
const RATE = { atOnce: 100, seconds: 3 };

interface RightPassword {
  username: string;
  address: string;
  requestId?: string;
}

/** Writes an audit entry for right passwords that come with a request and begin no login, as those of Basic. */
export class AuditedPasswords {
  readonly #database: Database;
  readonly #told = new LeakyBuckets(RATE);

  constructor(database: Database) {
    this.#database = database;
  }

  async record({ username, address, requestId }: RightPassword): Promise<void> {
    if (this.#told.add(username) > 0) return;
    const told = { user: username, address, requestId: requestId ?? null };
    await recordAudit(this.#database.db, { ...told, action: 'login', target: null });
  }
}
