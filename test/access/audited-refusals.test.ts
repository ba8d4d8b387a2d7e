import { expect, test } from 'vitest';
import { AuditedRefusals } from '../../api/identity/audited-refusals.ts';
import { auditPending } from '../../shared/database/schema.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const AT_ONCE = 1_000;
const SECONDS = 3;

const directory = withDatabase('audited-refusals');

test('names and addresses without end fill no audit: it tells once a minute that there were others', async () => {
  const { db } = directory.database();
  const refused = new AuditedRefusals(directory.database());
  const record = (n: number) => {
    const [username, address] = [`guess${n}`, `2001:db8:0:${n.toString(16)}::`];
    const key = `${address} ${username}`;
    return refused.record({ key, username, address, action: 'login', requestId: `r${n}` });
  };
  const began = performance.now();
  for (let n = 0; n < 1_200; n += 50)
    await Promise.all(Array.from({ length: 50 }, (_, more) => record(n + more)));
  const meanwhile = Math.ceil((performance.now() - began) / 1_000 / SECONDS);
  const rows = await db.select().from(auditPending);
  expect(rows.length).toBeGreaterThan(AT_ONCE);
  expect(rows.length).toBeLessThanOrEqual(AT_ONCE + meanwhile + 1);
  const others = rows.filter(({ username }) => username === null);
  expect(others).toMatchObject([
    { address: null, requestId: null, action: 'login', outcome: 'refused' },
  ]);
});
