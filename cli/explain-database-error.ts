import { describeOutage, isDatabaseDown, sqlState } from '../shared/database/connect.ts';
import { describeRefusal } from '../shared/database/describe-refusal.ts';
import { hostsOf, splitHosts } from '../shared/database/host-urls.ts';
import { MigrationError } from '../shared/database/migrations/session.ts';
import { API_ROLE, WORKER_ROLE } from '../shared/database/rights.ts';
import { describeTlsFailure } from '../shared/database/tls.ts';
import { CommandError } from './command-error.ts';

const UNDEFINED_TABLE = '42P01';

/** A one-line error where the server at `url`, of this setting, cannot be used; any other error as it is. */
export function explainDatabaseError(error: unknown, url: string, setting: string): unknown {
  if (error instanceof CommandError) return error;
  const host = hostsOf(url);
  const { pathname, username } = new URL(splitHosts(url)[0] ?? url);
  const name = pathname.slice(1);
  const failure = (message: string, hint: string) =>
    new CommandError(message, { hint, cause: error });
  const refusal = describeRefusal(error, url, setting);
  if (refusal) return failure(refusal.problem, refusal.hint);
  switch (sqlState(error)) {
    case '42501':
      return failure(
        `${username} lacks a right in the database ${name} at ${host}.`,
        // That these own nothing is what they are for.
        [API_ROLE, WORKER_ROLE].includes(username)
          ? `Run it with the ${setting} of the owner of the database, such as windlass_owner.`
          : `Let it own the database: ALTER DATABASE "${name}" OWNER TO "${username}".`,
      );
  }
  if (error instanceof MigrationError)
    return failure(error.message, 'What was done is kept. Mend the cause and start it again.');
  if (sqlState(error) === UNDEFINED_TABLE)
    return failure('The database has no tables of Windlass yet.', 'Run `windlass migrate`.');
  if (!isDatabaseDown(error)) return error;
  const outage = describeOutage(error).replace('the database', `the database at ${host}`);
  const hint = /^53/.test(sqlState(error) ?? '')
    ? 'Make room for it, and start again.'
    : `Start it, or correct ${setting}.`;
  return failure(
    `${outage[0]?.toUpperCase()}${outage.slice(1)}.`,
    describeTlsFailure(error)?.hint ?? hint,
  );
}
