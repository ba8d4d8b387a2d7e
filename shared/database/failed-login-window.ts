import { sql } from 'drizzle-orm';
import { failedLogins } from './tables/accounts.ts';

/** Failed logins are counted in windows of this length, from the first failure on. */
export const FAILED_LOGIN_WINDOW_SECONDS = 15 * 60;

/** What began before has ended. */
export const windowBegin = sql`now() - make_interval(secs => ${FAILED_LOGIN_WINDOW_SECONDS})`;
export const isCurrent = sql`${failedLogins.began} > ${windowBegin}`;
/** Seconds until the window of a row ends. */
export const secondsLeft = sql<number>`ceil(extract(epoch from ${failedLogins.began} - (${windowBegin})))::int`;
