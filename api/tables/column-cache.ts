import { and, eq } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Db } from '../../shared/database/connect.ts';
import { artifacts, type ColumnStatistics } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors/errors.ts';

/** Columns of all cached tables together. Those of one table may be some MB, and never change. */
const MAX_CACHED_COLUMNS = 20_000;

/** Facts on the columns of recently used tables. */
export class ColumnCache {
  readonly #columns = new LRUCache<string, ColumnStatistics[]>({
    maxSize: MAX_CACHED_COLUMNS,
    sizeCalculation: columns => columns.length || 1,
  });

  /** Throws `conflict` when the table was replaced or deleted meanwhile. */
  async find(
    db: Db,
    { model, aid, object }: { model: string; aid: string; object: string },
  ): Promise<ColumnStatistics[]> {
    const known = this.#columns.get(object);
    if (known) return known;
    const [found] = await db
      .select({ columns: artifacts.columns })
      .from(artifacts)
      .where(and(eq(artifacts.model, model), eq(artifacts.aid, aid), eq(artifacts.object, object)));
    if (!found?.columns)
      throw conflict('the table was replaced or deleted just now.', 'Ask again.');
    this.#columns.set(object, found.columns);
    return found.columns;
  }
}
