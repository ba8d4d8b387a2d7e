import { expect, test } from 'vitest';
import { createToken } from '../../api/identity/api-tokens.ts';
import { makeLink } from '../../api/identity/links.ts';
import { lockAdministrator, lockUnchangedUser } from '../../api/identity/lock-user.ts';
import { beginLogin } from '../../api/identity/logins.ts';
import { removeUser } from '../../api/identity/remove-user.ts';
import { users } from '../../shared/database/schema.ts';
import { withDatabase } from '../harness/migrated-database.ts';

const given = withDatabase('reused-names');
const noAudit = async () => {};

test('a request of a removed user makes nothing in the name of the next one', async () => {
  const { db } = given.database();
  const add = async () => {
    const [row] = await db
      .insert(users)
      .values({ username: 'u', passwordHash: '', administrator: true })
      .returning();
    if (!row) throw new Error('The user was not added.');
    return row;
  };
  const removed = await add();
  await db.transaction(tx => removeUser(tx, 'u', noAudit));
  await add();

  const login = { timeout: 60, instead: undefined, auditAs: () => noAudit };
  expect(await beginLogin(db, removed, login)).toBeUndefined();
  const link = { address: { path: '/api/jobs', query: '' }, seconds: 60, audit: noAudit };
  const keys = { SECRET_KEY: 'key', SECRET_KEY_BEFORE: undefined };
  const makes = [
    () => createToken(db, removed, { name: 't', scope: 'write' }, noAudit),
    () => makeLink(db, keys, { user: removed }, link),
    () => db.transaction(tx => lockUnchangedUser(tx, removed)),
    () => db.transaction(tx => lockAdministrator(tx, removed)),
  ];
  for (const make of makes) await expect(make()).rejects.toMatchObject({ code: 'unauthorized' });
});
