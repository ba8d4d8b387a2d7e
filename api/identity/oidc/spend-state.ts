import { eq, sql } from 'drizzle-orm';
import type { Db } from '../../../shared/database/connect.ts';
import { spentOidcStates } from '../../../shared/database/schema.ts';
import { hashSecret } from '../random-secrets.ts';
import { LOGIN_SECONDS } from './login-cookie.ts';
import { beginAgain } from './provider-errors.ts';

/**
 * Logs in with a state, once. A concurrent copy of the request is refused: a provider that gets a code twice revokes
 * the tokens that it issued for it (RFC 6749, 4.1.2). A failed login frees the state, so that nobody fills the table.
 */
export async function spendState<T>(db: Db, state: string, logIn: () => Promise<T>): Promise<T> {
  const hash = hashSecret(state);
  const expires = sql`now() + make_interval(secs => ${2 * LOGIN_SECONDS})`;
  const spent = await db
    .insert(spentOidcStates)
    .values({ state: hash, expires })
    .onConflictDoNothing()
    .returning({ state: spentOidcStates.state });
  if (spent.length === 0) throw beginAgain('state', 'was used already');
  try {
    return await logIn();
  } catch (error) {
    const given = db.delete(spentOidcStates).where(eq(spentOidcStates.state, hash));
    // The row expires by itself, and the first error says more.
    await given.catch(() => undefined);
    throw error;
  }
}
