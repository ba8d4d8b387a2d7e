import { and, eq } from 'drizzle-orm';
import type { Request, Response } from 'express';
import { rowExists } from '../../../shared/database/row-exists.ts';
import { idempotencyKeys } from '../../../shared/database/schema.ts';
import type { ApiContext } from '../../context.ts';
import { currentUser } from '../../identity/current-user.ts';
import { readIdempotencyKey } from './start-requested-job.ts';

/**
 * Whether an earlier request had this one's Idempotency-Key. For what is checked before the body is there, with which
 * startRequestedJob() finds the job.
 */
export async function repeatsEarlierRequest(
  api: ApiContext,
  req: Request,
  res: Response,
): Promise<boolean> {
  const given = readIdempotencyKey(api, req);
  if (!given) return false;
  const { owner, route, key } = idempotencyKeys;
  const { username } = currentUser(res);
  const its = and(eq(owner, username), eq(route, given.route), eq(key, given.key));
  return rowExists(api.database.db, idempotencyKeys, its);
}
