import { sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { Database } from '../../shared/database/connect.ts';
import { auditPending, failedLogins } from '../../shared/database/schema.ts';
import { LeakyBuckets } from '../concurrency/leaky-buckets.ts';

/** More than the minute between two entries, which the database's clock measures. */
const REMEMBERED_MS = 62_000;
const MAX_RECORDED = 10_000;
/** Limit on the entries of one process that name who was refused: `atOnce`, and then one in each `seconds`. */
const NAMED = { atOnce: 1_000, seconds: 3 };
/** One entry stands for all others. Neither an address nor a name is an asterisk. */
const OTHERS = { key: '* *', username: undefined, address: undefined, requestId: undefined };

export interface RefusedLogin {
  /** A key of failed_logins: entries with one key are a minute apart. */
  key: string;
  username: string | undefined;
  address: string | undefined;
  action: AuditAction;
  requestId: string | undefined;
}

/**
 * Writes an audit entry for refused logins, once a minute for each key in all processes: a flood writes few. Where names and
 * addresses change without end, one entry a minute tells that others were refused.
 */
export class AuditedRefusals {
  readonly #database: Database;
  readonly #recorded = new LRUCache<string, true>({ max: MAX_RECORDED, ttl: REMEMBERED_MS });
  readonly #named = new LeakyBuckets(NAMED);

  constructor(database: Database) {
    this.#database = database;
  }

  async record(refused: RefusedLogin): Promise<void> {
    if (this.#recorded.has(nameOf(refused))) return;
    const others = { ...OTHERS, action: refused.action };
    const isNamed = this.#named.add('all') === 0;
    if (isNamed || !this.#recorded.has(nameOf(others)))
      await this.#write(isNamed ? refused : others);
  }

  async #write(refused: RefusedLogin): Promise<void> {
    const { key, username, address, action, requestId } = refused;
    const each = nameOf(refused);
    this.#recorded.set(each, true);
    const entry = this.#database.db.execute(sql`
      with due as (
        insert into ${failedLogins} (key, failures, began, audited) values (${key}, 0, now(), now())
        on conflict (key) do update set audited = now()
          where failed_logins.audited is null or failed_logins.audited < now() - interval '1 minute'
        returning key
      )
      insert into ${auditPending} (username, address, action, outcome, request_id)
      select ${username ?? null}, ${address ?? null}, ${action}, 'refused', ${requestId ?? null} from due`);
    await entry.catch((error: unknown) => {
      this.#recorded.delete(each);
      throw error;
    });
  }
}

const nameOf = ({ action, key }: RefusedLogin) => `${action} ${key}`;
