import type pg from 'pg';

/**
 * Left out: what running processes report of themselves, and what upkeep counts anew. Neither is true of a past state.
 */
const LEFT_OUT = ['workers', 'leases', 'user_storage', 'storage_changes'];

/** The tables of a backup with their columns, each table after those that it refers to. */
export async function listTables(
  client: pg.Client,
): Promise<{ name: string; columns: string[] }[]> {
  const { rows: tables } = await client.query<{ name: string; columns: string[]; needs: string[] }>(
    `select relname as name,
      array(select attname::text from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
        order by attnum) as columns,
      array(select confrelid::regclass::text from pg_constraint
        where conrelid = c.oid and contype = 'f' and confrelid <> c.oid) as needs
    from pg_class c
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all($1)
    order by relname`,
    [LEFT_OUT],
  );
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

/**
 * The keys of all objects that a row refers to, in batches. A job refers to objects of its own result for a day. The
 * job of a view names the view's object, which goes with the table: only the view's row counts.
 */
export async function* listReferences(client: pg.Client): AsyncGenerator<string[]> {
  await client.query(`
    declare referenced no scroll cursor for
    select object from upload_parts where object is not null
    union select object from artifacts where object is not null
    union select object from cache_entries where object is not null
    union select object from table_views where object is not null
    union select object from job_segments
    union select found.object from jobs, unnest(array[
        result ->> 'object', result ->> 'poster', result ->> 'sprite']) as found (object)
      where split_part(found.object, '/', 2) = jobs.id and finished > now() - interval '24 hours'`);
  for (;;) {
    const { rows } = await client.query<{ object: string }>('fetch 1000 from referenced');
    if (rows.length === 0) return;
    yield rows.map(row => row.object);
  }
}
