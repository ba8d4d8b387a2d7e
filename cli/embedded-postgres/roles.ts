import { createHmac } from 'node:crypto';
import type pg from 'pg';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { sqlState } from '../../shared/database/connect.ts';
import { withScram } from '../../shared/database/host-urls.ts';
import { clientOf, finderOf } from '../../shared/database/primary.ts';
import { API_ROLE, WORKER_ROLE } from '../../shared/database/rights.ts';
import { CommandError } from '../command-error.ts';

/** Owns the tables, and migrates them. */
export const OWNER_ROLE = 'windlass_owner';
const ROLES = [OWNER_ROLE, API_ROLE, WORKER_ROLE] as const;

/**
 * The URLs of the embedded database for its users. None of their roles may read files, start programs or make roles.
 */
export interface RoleUrls {
  /** The URL for migrations and commands of the operator. */
  owner: string;
  api: string;
  worker: string;
}

const LOCK_TIMEOUT = '10s';

/**
 * Creates the roles in the database at `url`, whose role is its superuser, and gives the owner what the superuser owns: all,
 * in a database of 0.1.0. Safe to repeat, also beside running programs.
 */
export async function prepareRoles(url: string): Promise<RoleUrls> {
  const superuser = withScram(url);
  const client = new (clientOf(superuser))({
    connectionString: finderOf(superuser).url,
    application_name: 'windlass roles',
  });
  client.on('error', () => {});
  const urls = {
    owner: urlOf(url, OWNER_ROLE),
    api: urlOf(url, API_ROLE),
    worker: urlOf(url, WORKER_ROLE),
  };
  await client.connect().catch(explainRefusal);
  try {
    await client.query(
      `begin; set local lock_timeout = '${LOCK_TIMEOUT}'; select pg_advisory_xact_lock(${ADVISORY_LOCKS.roles})`,
    );
    for (const role of ROLES) await prepareRole(client, role, passwordOf(url, role));
    await client.query(`grant ${API_ROLE} to ${WORKER_ROLE}`);
    await client.query(HAND_OVER);
    await client.query('commit');
  } finally {
    await client.end().catch(() => {});
  }
  return urls;
}

/** The file may be of another time than the database, such as one of an older copy. */
function explainRefusal(error: unknown): never {
  if (sqlState(error) !== '28P01') throw error;
  throw new CommandError('The embedded database has another password than postgres.password.', {
    hint: 'Restore that file of DATA_DIR, or remove it and start the service, which then makes a new one.',
    cause: error,
  });
}

async function prepareRole(client: pg.Client, role: string, password: string): Promise<void> {
  const known = await client.query('select from pg_roles where rolname = $1', [role]);
  const verb = known.rowCount === 0 ? 'create' : 'alter';
  await client.query(
    `${verb} role ${role} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password '${password}'`,
  );
}

/**
 * Derived from the superuser's password, which is in a file: nothing else must be kept, and no role can derive
 * another's.
 */
const passwordOf = (url: string, role: string) =>
  createHmac('sha256', new URL(url).password).update(role).digest('base64url');

function urlOf(url: string, role: string): string {
  const own = new URL(url);
  own.username = role;
  own.password = passwordOf(url, role);
  return withScram(own.href);
}

/** An index, and the sequence of a column, go with their table. */
const HAND_OVER = `do $$
declare
  one record;
begin
  if (select datdba <> '${OWNER_ROLE}'::regrole from pg_database where datname = current_database()) then
    execute format('alter database %I owner to ${OWNER_ROLE}', current_database());
  end if;
  for one in select oid::regnamespace as name from pg_namespace
    where nspname in ('drizzle', 'bullmq') and nspowner <> '${OWNER_ROLE}'::regrole
  loop
    execute format('alter schema %s owner to ${OWNER_ROLE}', one.name);
  end loop;
  for one in select oid::regclass as name from pg_class
    where relnamespace::regnamespace::text in ('public', 'drizzle', 'bullmq')
      and relkind in ('r', 'p', 'v', 'm', 'S') and relowner <> '${OWNER_ROLE}'::regrole
      and not exists (select from pg_depend
        where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype in ('a', 'i', 'e'))
  loop
    execute format('alter table %s owner to ${OWNER_ROLE}', one.name);
  end loop;
  for one in select oid::regprocedure as name from pg_proc
    where pronamespace::regnamespace::text in ('public', 'drizzle', 'bullmq') and proowner <> '${OWNER_ROLE}'::regrole
  loop
    execute format('alter routine %s owner to ${OWNER_ROLE}', one.name);
  end loop;
  for one in select oid::regtype as name from pg_type
    where typnamespace::regnamespace::text in ('public', 'drizzle', 'bullmq')
      and typtype in ('e', 'd') and typowner <> '${OWNER_ROLE}'::regrole
  loop
    execute format('alter type %s owner to ${OWNER_ROLE}', one.name);
  end loop;
end $$`;
