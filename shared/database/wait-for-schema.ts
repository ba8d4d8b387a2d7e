import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { ConfigError } from '../settings/config.ts';
import { type Database, describeOutage, isDatabaseDown, sqlState } from './connect.ts';
import { describeRefusal, describeVersion } from './describe-refusal.ts';
import { MIGRATIONS, readJournal } from './migrations/migration-files.ts';
import { describeNewerSchema } from './newer-schema.ts';
import { requireDirect, requireSettings } from './pooler.ts';
import { describeTlsFailure } from './tls.ts';

const INSUFFICIENT_PRIVILEGE = '42501';
const OLDER = 'the schema is older than this program: run `windlass migrate`';
const NO_RIGHTS =
  'the role of DATABASE_URL has no rights to the schema yet: `windlass migrate`, with the URL of the owner, grants them';

/**
 * Waits until another process has applied every migration that this one knows. Throws a ConfigError if the server at `url`
 * refuses this program or is too old, or if the database lies behind a connection pooler and something is missing for that.
 */
export async function waitForSchema(
  database: Database,
  options: {
    url: string;
    signal?: AbortSignal;
    onWait?: (reason: string) => void;
    onNewer?: (what: string) => void;
  },
): Promise<void> {
  const known = readJournal(MIGRATIONS);
  for (let tries = 0; ; tries++) {
    options.signal?.throwIfAborted();
    let reason = OLDER;
    const applied = await listApplied(database, options.url).catch((error: unknown) => {
      throwIfRefused(describeRefusal(error, options.url, 'DATABASE_URL'));
      // The schema is made before the rights to it are granted, and a restored or older database may lack them.
      if (sqlState(error) === INSUFFICIENT_PRIVILEGE) reason = NO_RIGHTS;
      else if (isDatabaseDown(error))
        reason = [describeOutage(error), describeTlsFailure(error)?.hint]
          .filter(Boolean)
          .join('. ');
      else throw error;
      return undefined;
    });
    const isDone = applied && known.every(({ when }) => applied.has(when));
    // A pooler may refuse the settings of the other connections, which looks like an outage.
    if (isDone || tries % 20 === 0) await requireDirect(database);
    if (isDone) {
      await requireSettings(database);
      const unknown = applied.size - known.length;
      if (unknown > 0) options.onNewer?.(describeNewerSchema(unknown));
      return;
    }
    if (tries % 20 === 4) options.onWait?.(reason);
    await delay(250);
  }
}

function throwIfRefused(refusal: { problem: string; hint: string } | undefined): void {
  if (refusal) throw new ConfigError([`${refusal.problem} ${refusal.hint}`]);
}

async function listApplied({ db }: Database, url: string): Promise<Set<number>> {
  const [found] = await db.execute<{ at: string | null; major: number }>(sql`
    select to_regclass('drizzle.__drizzle_migrations') as at,
      current_setting('server_version_num')::int / 10000 as major`);
  throwIfRefused(found && describeVersion(found.major, url));
  if (!found?.at) return new Set();
  const rows = await db.execute<{ at: string }>(
    sql`select created_at as at from drizzle.__drizzle_migrations`,
  );
  return new Set(rows.map(row => Number(row.at)));
}
