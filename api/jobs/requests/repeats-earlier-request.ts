import { and, eq } from 'drizzle-orm';
import { rowExists } from '../../../shared/database/row-exists.ts';
import { idempotencyKeys } from '../../../shared/database/schema.ts';
import type { ApiContext } from '../../context.ts';
import type { Exchange } from '../../http/exchange.ts';
import { currentUser } from '../../identity/current-user.ts';
import { readIdempotencyKey } from './start-requested-job.ts';

/**
 * What is checked before the job is started. Undefined where that fails for a repeat: it is answered with its job, though
 * the session, for instance, has ended since. Who is told that it has would do the work again.
 */
export async function unlessRepeated<T>(
  api: ApiContext,
  { req, res }: Exchange,
  check: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await check();
  } catch (refusal) {
    if (await repeatsEarlierRequest(api, { req, res })) return undefined;
    throw refusal;
  }
}

/**
 * Whether an earlier request had this one's Idempotency-Key. For what is checked before the body is there, with which
 * startRequestedJob() finds the job.
 */
export async function repeatsEarlierRequest(
  api: ApiContext,
  { req, res }: Exchange,
): Promise<boolean> {
  const given = readIdempotencyKey(api, req);
  if (!given) return false;
  const { owner, route, key } = idempotencyKeys;
  const { username } = currentUser(res);
  const its = and(eq(owner, username), eq(route, given.route), eq(key, given.key));
  return rowExists(api.database.db, idempotencyKeys, its);
}
