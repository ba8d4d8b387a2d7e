import { lt, sql } from 'drizzle-orm';
import { failedLogins, logins, tokens } from '../../shared/database/schema.ts';
import { FAILED_LOGIN_SECONDS } from '../../shared/failed-logins.ts';
import type { WorkerContext } from '../context.ts';

/** Removes logins, tokens and counts of failed logins that have ended. They were refused, or counted nothing, before. */
export async function removeOldLogins({ database: { db } }: WorkerContext): Promise<void> {
  await db.delete(logins).where(lt(logins.expires, sql`now()`));
  await db.delete(tokens).where(lt(tokens.expires, sql`now()`));
  const window = sql`make_interval(secs => ${FAILED_LOGIN_SECONDS})`;
  await db.delete(failedLogins).where(lt(failedLogins.began, sql`now() - ${window}`));
}
