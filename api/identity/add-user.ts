import { users } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors/errors.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { ACCOUNT_COLUMNS, type Account, partyOf } from './account.ts';
import { auditOf } from './audit.ts';
import { currentUser } from './current-user.ts';
import { lockAdministrator } from './lock-user.ts';

/** Throws `conflict` where there is such a user already. */
export async function addUser(
  api: ApiContext,
  { req, res }: Exchange,
  { password, ...given }: { username: string; password: string; administrator: boolean },
): Promise<Account> {
  const passwordHash = await api.passwords.hash(password, partyOf({ req, res }));
  const audit = auditOf({ req, res });
  const row = await api.database.db.transaction(async tx => {
    await lockAdministrator(tx, currentUser(res));
    const [added] = await tx
      .insert(users)
      .values({ ...given, passwordHash })
      .onConflictDoNothing()
      .returning(ACCOUNT_COLUMNS);
    if (!added) return undefined;
    await audit(tx, 'user.create', added.username);
    if (added.administrator) await audit(tx, 'user.promote', added.username);
    return added;
  });
  if (row) return row;
  throw conflict(
    `there is a user ${given.username} already.`,
    'Choose another name, or change that user with PUT.',
  );
}
