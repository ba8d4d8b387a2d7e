import { expect, test } from 'vitest';
import { CredentialCache } from '../../api/identity/credential-cache.ts';
import { Revocations } from '../../api/identity/revocations.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { createLog } from '../../shared/process/log.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('credential_cache');

test('an identity that was looked up before a change of credentials is not kept after it', () => {
  const log = createLog({ level: 'silent', name: 'test' });
  const revocations = new Revocations(new Notifications(given.database(), log));
  const cache = new CredentialCache(revocations);
  const identity = {
    user: { username: 'ada', administrator: false, version: 1 },
    by: 'token',
  } as const;
  const { generation } = cache;
  cache.set('before', identity, generation);
  expect(cache.find('before')).toBe(identity);
  revocations.forget();
  cache.set('late', identity, generation);
  cache.set('after', identity, cache.generation);
  expect(['before', 'late', 'after'].map(key => cache.find(key))).toEqual([
    undefined,
    undefined,
    identity,
  ]);
});
