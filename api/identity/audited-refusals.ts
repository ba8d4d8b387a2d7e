import { sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { Database } from '../../shared/database/connect.ts';
import { auditPending, failedLogins } from '../../shared/database/schema.ts';

/** More than the minute between two entries, which the database's clock measures. */
const REMEMBERED_MS = 62_000;
const MAX_RECORDED = 10_000;

export interface RefusedLogin {
  /** Of failed_logins: entries with one key are a minute apart. */
  key: string;
  username: string | undefined;
  address: string;
  action: AuditAction;
  requestId: string | undefined;
}

/** Writes an audit entry for refused logins, once a minute for each key in all processes: a flood writes few. */
export class AuditedRefusals {
  readonly #database: Database;
  readonly #recorded = new LRUCache<string, true>({ max: MAX_RECORDED, ttl: REMEMBERED_MS });

  constructor(database: Database) {
    this.#database = database;
  }

  async record({ key, username, address, action, requestId }: RefusedLogin): Promise<void> {
    const each = `${action} ${key}`;
    if (this.#recorded.has(each)) return;
    this.#recorded.set(each, true);
    const entry = this.#database.db.execute(sql`
      with due as (
        insert into ${failedLogins} (key, failures, began, audited) values (${key}, 0, now(), now())
        on conflict (key) do update set audited = now()
          where failed_logins.audited is null or failed_logins.audited < now() - interval '1 minute'
        returning key
      )
      insert into ${auditPending} (username, address, action, outcome, request_id)
      select ${username ?? null}, ${address}, ${action}, 'refused', ${requestId ?? null} from due`);
    await entry.catch((error: unknown) => {
      this.#recorded.delete(each);
      throw error;
    });
  }
}
