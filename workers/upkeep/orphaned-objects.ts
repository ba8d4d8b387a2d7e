import { sql } from 'drizzle-orm';
import { pendingDeletions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { OBJECT_PREFIXES } from '../../shared/jobs/object-keys.ts';
import type { StoredObject } from '../../shared/storage/object-store.ts';
import type { WorkerContext } from '../context.ts';
import { findClaimedByOpenJobs, findReferenced } from './object-references.ts';

/** Younger objects may belong to an attempt that is about to promote them. */
const YOUNG_MS = 3_600_000;
/**
 * What is found is removed so much later, when it is looked at once more: some servers give an object the time at which its
 * writing began, so that one which is referred to in a moment may look old.
 */
const NOTICE = sql`interval '1 hour'`;
/** An unfinished write that nobody has touched for so long has no writer any more. */
const ABANDONED_MS = 24 * 3_600_000;
/** From the end of one pass over all objects to the next: what is removed in the regular way needs none. */
const PAUSE_MS = 6 * 3_600_000;
const RETRY_MS = 60_000;
const BATCH = 500;
/** Objects looked at in one round of upkeep: ten million take about four hours. */
const PER_ROUND = 4_000;

type Context = Pick<WorkerContext, 'database' | 'objects' | 'log' | 'stopping'>;

/**
 * Finds what nothing refers to: videos whose time is up, and what attempts stored that came to nothing. It goes over all
 * objects a few at a time, one page of the list in hand, and notes what it finds as loose.
 */
export class OrphanedObjects {
  readonly #context: Context;
  #list: AsyncIterator<StoredObject> | undefined;
  #notBefore = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  /** A round's share of a pass, or nothing where none is due. */
  async look(): Promise<void> {
    if (performance.now() < this.#notBefore) return;
    try {
      if (!(await this.#lookOn())) return;
      await this.#context.objects.removeAbandoned(new Date(Date.now() - ABANDONED_MS));
      this.#begin(PAUSE_MS);
    } catch (error) {
      this.#begin(RETRY_MS);
      if (!(error instanceof WindlassError) || error.code !== 'unavailable') throw error;
      this.#context.log.debug(
        { err: error },
        'the object store is away: looking for old objects waits',
      );
    }
  }

  #begin(inMs: number): void {
    this.#list = undefined;
    this.#notBefore = performance.now() + inMs;
  }

  /** True at the end of the pass. */
  async #lookOn(): Promise<boolean> {
    this.#list ??= listAll(this.#context)[Symbol.asyncIterator]();
    let batch: string[] = [];
    for (let seen = 0; seen < PER_ROUND; seen++) {
      const { done, value } = await this.#list.next();
      if (!done && Date.now() - value.modified.getTime() >= YOUNG_MS) batch.push(value.key);
      if (done || batch.length === BATCH) {
        await this.#note(batch);
        batch = [];
      }
      if (done) return true;
    }
    await this.#note(batch);
    return false;
  }

  async #note(keys: string[]): Promise<void> {
    if (keys.length === 0) return;
    const { db } = this.#context.database;
    const referenced = await findReferenced(db, keys);
    const free = keys.filter(key => !referenced.has(key));
    const awaited = free.length > 0 ? await findClaimedByOpenJobs(db, free) : new Set();
    const old = free.filter(key => !awaited.has(key)).sort();
    if (old.length === 0) return;
    await db
      .insert(pendingDeletions)
      .values(old.map(object => ({ object, due: sql`now() + ${NOTICE}` })))
      .onConflictDoNothing();
    this.#context.log.info({ count: old.length }, 'objects that nothing refers to will be removed');
  }
}

async function* listAll({ objects }: Context): AsyncGenerator<StoredObject> {
  for (const prefix of OBJECT_PREFIXES) yield* objects.list(prefix);
}
