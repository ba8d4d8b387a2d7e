import { and, desc, eq, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';

/** So long a session whose login was refused is not logged in again: repeated refusals get an address banned. */
const REFUSED_FOR_MS = 300_000;
/** In the error record of a job that failed for an earlier refusal, this one's time: such a job refuses no others. */
const EARLIER = 'refusedAt';

/**
 * The sessions whose credential the host refused lately, to this worker or, as their jobs tell, to another: what needs
 * one of them fails at once, and nothing is sent to the host. A new session begins anew.
 */
export class RefusedLogins {
  readonly #database: Database;
  readonly #refusals = new Map<string, Date>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** To be told how every attempt to connect failed. */
  note(sid: string, error: unknown): void {
    const isRefusal =
      error instanceof WindlassError && error.code === 'remote_authentication_failed';
    if (isRefusal) this.#refusals.set(sid, new Date());
  }

  /** Throws `remote_authentication_failed`. */
  async throwIfRefused(sid: string): Promise<void> {
    for (const [old, at] of this.#refusals)
      if (Date.now() - at.getTime() > REFUSED_FOR_MS) this.#refusals.delete(old);
    const at = this.#refusals.get(sid) ?? (await this.#findInJobs(sid));
    if (!at) return;
    const until = new Date(at.getTime() + REFUSED_FOR_MS);
    throw new WindlassError('remote_authentication_failed', {
      detail: `The host refused this session's login at ${at.toISOString()}; it is not tried again before ${until.toISOString()}.`,
      hint: 'Open a new session with credentials that the host accepts.',
      extra: { [EARLIER]: at.toISOString() },
    });
  }

  async #findInJobs(sid: string): Promise<Date | undefined> {
    const [row] = await this.#database.db
      .select({ finished: jobs.finished })
      .from(jobs)
      .where(
        and(
          eq(jobs.session, sid),
          sql`${jobs.finished} > now() - make_interval(secs => ${REFUSED_FOR_MS / 1_000})`,
          sql`'remote_authentication_failed' in (${jobs.error} ->> 'code', ${jobs.error} ->> 'because')`,
          sql`not ${jobs.error} ? ${EARLIER}::text`,
        ),
      )
      .orderBy(desc(jobs.finished))
      .limit(1);
    return row?.finished ?? undefined;
  }
}
