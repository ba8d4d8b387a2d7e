import type postgres from 'postgres';

type Sql = postgres.Sql | postgres.TransactionSql;

/** What processes that run now say of themselves: of a state of the past it says nothing. */
const OF_PROCESSES = ['workers', 'leases'];

/** The tables of a backup with their columns, each table after those that it refers to. */
export async function listTables(sql: Sql): Promise<{ name: string; columns: string[] }[]> {
  const tables = await sql<{ name: string; columns: string[]; needs: string[] }[]>`
    select relname as name,
      array(select attname::text from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
        order by attnum) as columns,
      array(select confrelid::regclass::text from pg_constraint
        where conrelid = c.oid and contype = 'f' and confrelid <> c.oid) as needs
    from pg_class c
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all(${OF_PROCESSES})
    order by relname`;
  const left = new Map(tables.map(table => [table.name, table]));
  const sorted: { name: string; columns: string[] }[] = [];
  while (left.size > 0) {
    const ready = [...left.values()].filter(({ needs }) => !needs.some(name => left.has(name)));
    if (ready.length === 0) throw new Error(`tables refer to each other: ${[...left.keys()]}`);
    for (const { name, columns } of ready) {
      left.delete(name);
      sorted.push({ name, columns });
    }
  }
  return sorted;
}

/** The keys of all objects that a row refers to, in batches. The result of a job is kept for a day. */
export function listReferences(sql: Sql): AsyncIterable<{ object: string }[]> {
  return sql<{ object: string }[]>`
    select object from upload_parts where object is not null
    union select object from artifacts where object is not null
    union select object from cache_entries where object is not null
    union select object from table_views where object is not null
    union select object from job_segments
    union select result ->> 'object' from jobs
      where result ->> 'object' is not null and finished > now() - interval '24 hours'`.cursor(
    1_000,
  );
}
