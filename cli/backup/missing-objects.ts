import type pg from 'pg';
import { CommandError } from '../command-error.ts';

/** So many are named. */
const MAX_NAMED = 20;

/** What refers to each of these objects, in words for who is to delete it. */
const WHO_REFERS = `
  select missing.key, coalesce(
    (select format('artifact %s of model %s in project %s', aid, mid, project)
      from artifacts join models on mid = model where object = missing.key limit 1),
    (select format('%s in the cache of project %s', cache_entries.key, project)
      from cache_entries where object = missing.key limit 1),
    (select format('a part of upload %s', upload) from upload_parts where object = missing.key limit 1),
    (select format('a view of the table that has the object %s', source)
      from table_views where object = missing.key limit 1),
    format('job %s', split_part(missing.key, '/', 2))) as what
  from unnest($1::text[]) as missing (key)`;

/** The error that names them. */
export async function describeMissing(client: pg.Client, keys: string[]): Promise<CommandError> {
  const named = keys.toSorted().slice(0, MAX_NAMED);
  const { rows } = await client.query<{ key: string; what: string }>(WHO_REFERS, [named]);
  const told = rows.map(({ key, what }) => `${key} (${what})`);
  if (keys.length > named.length) told.push(`${keys.length - named.length} more`);
  return new CommandError(
    `the object store lacks what the database refers to: ${told.join(', ')}.`,
    { hint: 'Delete what refers to it, or back up the rest: --without-missing.' },
  );
}
