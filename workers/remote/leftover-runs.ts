import { and, eq, isNotNull, notInArray, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';
import type { Use } from './run-remover.ts';

/** A session whose runs could not be removed is looked at again this much later. */
const AGAIN_MS = 60_000;
const REMOVE_MS = 30_000;
/** Of all sessions in one look. */
const MOST = 20;

interface LeftoverContext {
  database: Database;
  log: Logger;
  use: Use;
  /** Whether the session may be used, or logged in for this alone. */
  mayUse(sid: string): Promise<boolean>;
}

/** Removes runs whose job has ended but that are still on their host, because a worker died in between. */
export class LeftoverRuns {
  readonly #context: LeftoverContext;
  /** performance.now() before which a session is not looked at again. */
  readonly #again = new Map<string, number>();

  constructor(context: LeftoverContext) {
    this.#context = context;
  }

  /** One look, for some of them. */
  async remove(): Promise<void> {
    const left = new Map<string, string[]>();
    for (const { sid, id } of await this.#find()) left.set(sid, [...(left.get(sid) ?? []), id]);
    // Side by side: a host that does not answer holds up its own alone.
    await Promise.all([...left].map(([sid, ids]) => this.#removeOf(sid, ids)));
  }

  async #find(): Promise<{ id: string; sid: string }[]> {
    for (const [sid, at] of this.#again) if (at <= performance.now()) this.#again.delete(sid);
    const notYet = [...this.#again.keys()];
    return this.#context.database.db
      .select({ id: jobs.id, sid: sessions.sid })
      .from(jobs)
      .innerJoin(sessions, eq(sessions.sid, jobs.session))
      .where(
        and(
          isNotNull(jobs.runAt),
          eq(jobs.runForgotten, false),
          sql`${jobs.finished} < now() - interval '5 seconds'`,
          isNotNull(sessions.sealed),
          // Hosts that do not answer must not keep the runs of others from being removed.
          notYet.length > 0 ? notInArray(jobs.session, notYet) : undefined,
        ),
      )
      .limit(MOST);
  }

  async #removeOf(sid: string, ids: string[]): Promise<void> {
    const { database, log, use, mayUse } = this.#context;
    for (const id of ids) {
      try {
        if (!(await mayUse(sid))) return void this.#again.set(sid, performance.now() + AGAIN_MS);
        await use(sid, AbortSignal.timeout(REMOVE_MS), async session => {
          const agent = await session.agent();
          // Its job has ended without it, where the host could not be reached.
          await agent.stop(id);
          await agent.forget(id);
        });
        await database.db.update(jobs).set({ runForgotten: true }).where(eq(jobs.id, id));
      } catch (error) {
        this.#again.set(sid, performance.now() + AGAIN_MS);
        log.info(
          { err: error, job: id },
          'a run that ended could not be removed from its host yet',
        );
        // One that lives on keeps nobody from removing the others.
        if (!(error instanceof WindlassError && error.code === 'conflict')) return;
      }
    }
  }
}
