import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { DirectConnection } from '../../shared/database/direct-connection.ts';
import { withDatabase } from '../../test/harness/databases/migrated-database.ts';
import { type LockedFile, withFileLock } from './file-locks.ts';

const own = withDatabase('file-locks');
let here: DirectConnection;
beforeAll(() => {
  here = new DirectConnection(own.url);
});
afterAll(async () => {
  await here?.close();
});

const patient = new AbortController().signal;
const file = { host: 'one', account: 'alice', path: '/data/file' };
const locked = <T>(
  direct: DirectConnection,
  work: () => Promise<T>,
  other: Partial<LockedFile> = {},
) => withFileLock({ direct, ...file, ...other }, patient, work);

test('changes of one file come one after the other', async () => {
  let under = 0;
  let most = 0;
  let done = 0;
  const change = async () => {
    most = Math.max(most, ++under);
    await here.query('select 1');
    under--;
    done++;
  };
  await Promise.all(Array.from({ length: 5 }, () => locked(here, change)));
  expect([most, done]).toEqual([1, 5]);
});

test('a change waits for one in this process, not for other files, and not for ever', async () => {
  await locked(here, async () => {
    for (const other of [{ path: '/data/other' }, { host: 'two' }, { account: 'bob' }])
      expect(await locked(here, async () => 'changed', other)).toBe('changed');
    await expect(locked(here, async () => {}, { waitMs: 100 })).rejects.toMatchObject({
      code: 'conflict',
    });
  });
});

test('a change waits for one of another process, whose lock ends with its connection', async () => {
  const other = new DirectConnection(own.url);
  const name = [file.host, file.account, file.path].join('\n');
  await other.query('select pg_advisory_lock($1, hashtext($2))', [ADVISORY_LOCKS.files, name]);
  await expect(locked(here, async () => {}, { waitMs: 100 })).rejects.toMatchObject({
    code: 'conflict',
  });
  const cancelled = AbortSignal.abort(new Error('cancelled'));
  await expect(withFileLock({ direct: here, ...file }, cancelled, async () => {})).rejects.toThrow(
    'cancelled',
  );
  const waiting = locked(here, async () => 'changed');
  await other.close();
  expect(await waiting).toBe('changed');
});
