import { and, eq, type SQL, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Db } from '../../shared/database/connect.ts';
import { artifacts, type ColumnStatistics } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors/errors.ts';

/** Characters of JSON: the names, types and bounds of many tables of the most columns. */
const MAX_CACHED = 16 << 20;

interface Table {
  model: string;
  aid: string;
  object: string;
}

/**
 * Facts on the columns of recently used tables, which never change. All of one table may be many MB, so the database selects
 * what a request needs. Requests that need the same at once share one query. Each method throws `conflict` when the table was
 * replaced or deleted meanwhile.
 */
export class ColumnCache {
  readonly #known = new LRUCache<string, { value: unknown }>({ maxSize: MAX_CACHED });
  readonly #underWay = new Map<string, Promise<unknown>>();

  /** The name, type, missing values and bounds of each column; the bounds of texts, which no query needs, are null. */
  find(db: Db, table: Table): Promise<ColumnStatistics[]> {
    const bound = (name: string) => sql`case when c->>'type' <> 'text' then c->${name}::text end`;
    const column = sql`jsonb_build_object('name', c->'name', 'type', c->'type', 'nulls', c->'nulls',
      'min', ${bound('min')}, 'max', ${bound('max')})`;
    return this.#load(db, table, { key: table.object, json: eachColumn(column) });
  }

  /** All but the most frequent texts. */
  describe(db: Db, table: Table): Promise<ColumnStatistics[]> {
    const key = `${table.object} metadata`;
    return this.#load(db, table, { key, json: eachColumn(sql`c - 'top'::text`) });
  }

  /** The most frequent texts of a column; null where its table had no room for them. */
  findTop(db: Db, table: Table, column: string): Promise<ColumnStatistics['top'] | null> {
    const json = sql`coalesce((select c->'top' from jsonb_array_elements(${artifacts.columns}) as e(c)
      where c->>'name' = ${column}), 'null')`;
    return this.#load(db, table, { key: `${table.object} top ${column}`, json });
  }

  async #load<T>(db: Db, table: Table, { key, json }: { key: string; json: SQL }): Promise<T> {
    const known = this.#known.get(key);
    if (known) return known.value as T;
    const loading = this.#underWay.get(key) ?? this.#read(db, table, { key, json });
    this.#underWay.set(key, loading);
    return loading as Promise<T>;
  }

  async #read(
    db: Db,
    { model, aid, object }: Table,
    { key, json }: { key: string; json: SQL },
  ): Promise<unknown> {
    try {
      const [found] = await db
        .select({ text: sql<string>`(${json})::text` })
        .from(artifacts)
        .where(
          and(
            eq(artifacts.model, model),
            eq(artifacts.aid, aid),
            eq(artifacts.object, object),
            sql`${artifacts.columns} is not null`,
          ),
        );
      if (!found) throw conflict('the table was replaced or deleted just now.', 'Ask again.');
      const value: unknown = JSON.parse(found.text);
      this.#known.set(key, { value }, { size: key.length + found.text.length });
      return value;
    } finally {
      this.#underWay.delete(key);
    }
  }
}

/** The JSON of all columns, each as `column` makes it of `c`. */
const eachColumn = (column: SQL) =>
  sql`coalesce((select jsonb_agg(${column} order by n)
    from jsonb_array_elements(${artifacts.columns}) with ordinality as e(c, n)), '[]')`;
