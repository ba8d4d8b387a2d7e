import { and, desc, eq, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { jobs } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';

/** For so long after a refused login none is tried for its session: repeated refusals get an address banned. */
const REFUSED_FOR_MS = 300_000;
/** In the error record of a job that failed for an earlier refusal, its time. Such a job is no new refusal. */
const EARLIER = 'refusedAt';
/** Refusals kept in memory. Older ones are read from their jobs, or refused once more. */
const MAX_REFUSALS = 10_000;

const wasRefused = (sid: string) =>
  and(
    eq(jobs.session, sid),
    sql`'remote_authentication_failed' in (${jobs.error} ->> 'code', ${jobs.error} ->> 'because')`,
  );

/**
 * The sessions whose credential a host has refused, to this worker or, by the errors of their jobs, to another. Their
 * jobs fail at once for a while without a login. A new session may try.
 */
export class RefusedCredentials {
  readonly #database: Database;
  readonly #refusals = new LRUCache<string, Date>({ max: MAX_REFUSALS });

  constructor(database: Database) {
    this.#database = database;
  }

  /** Call with the error of every failed connection attempt. */
  record(sid: string, error: unknown): void {
    const isRefusal =
      error instanceof WindlassError && error.code === 'remote_authentication_failed';
    if (isRefusal) this.#refusals.set(sid, new Date());
  }

  /** Throws `remote_authentication_failed`. */
  async throwIfRefused(sid: string): Promise<void> {
    const own = this.#refusals.get(sid);
    const isRecent = own && Date.now() - own.getTime() <= REFUSED_FOR_MS;
    const at = isRecent ? own : await this.#findInJobs(sid);
    if (!at) return;
    const until = new Date(at.getTime() + REFUSED_FOR_MS);
    throw new WindlassError('remote_authentication_failed', {
      detail: `The host refused this session's login at ${at.toISOString()}; it is not tried again before ${until.toISOString()}.`,
      hint: 'Open a new session with credentials that the host accepts.',
      extra: { [EARLIER]: at.toISOString() },
    });
  }

  /**
   * Whether the login was ever refused. Then only requests of its owner log in: periodic work would be refused every
   * few minutes as long as the session lasts.
   */
  async wasEverRefused(sid: string): Promise<boolean> {
    if (this.#refusals.has(sid)) return true;
    return rowExists(this.#database.db, jobs, wasRefused(sid));
  }

  async #findInJobs(sid: string): Promise<Date | undefined> {
    const [row] = await this.#database.db
      .select({ finished: jobs.finished })
      .from(jobs)
      .where(
        and(
          wasRefused(sid),
          sql`${jobs.finished} > now() - make_interval(secs => ${REFUSED_FOR_MS / 1_000})`,
          sql`not ${jobs.error} ? ${EARLIER}::text`,
        ),
      )
      .orderBy(desc(jobs.finished))
      .limit(1);
    return row?.finished ?? undefined;
  }
}
