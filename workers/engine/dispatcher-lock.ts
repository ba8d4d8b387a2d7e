import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import type { DirectConnection } from '../../shared/database/direct-connection.ts';

/** PostgreSQL counts how often a connection takes a lock. We take it once, so one unlock releases it. */
const TAKE = `
  select case
    when exists (
      select from pg_locks
      where locktype = 'advisory' and pid = pg_backend_pid()
        and classid = 0 and objid = $1::bigint::oid and objsubid = 1)
    then true
    else pg_try_advisory_lock($1)
  end as mine`;

/** Whether this process is the dispatcher, or becomes it. To be asked each time: the connection may be another one (decision 3). */
export async function takeDispatcherLock(direct: DirectConnection): Promise<boolean> {
  const [row] = await direct.query<{ mine: boolean }>(TAKE, [ADVISORY_LOCKS.dispatcher]);
  return row?.mine === true;
}

/** Leaves the locks of files to the jobs that still run. Without the connection there is no lock. */
export async function giveUpDispatcherLock(direct: DirectConnection): Promise<void> {
  const unlock = direct.query('select pg_advisory_unlock($1)', [ADVISORY_LOCKS.dispatcher]);
  await unlock.catch(() => {});
}
