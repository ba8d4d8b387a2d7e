import { sql } from 'drizzle-orm';
import { beforeEach, expect, test } from 'vitest';
import { appendAudit, removeOldAudit } from '../../workers/upkeep/audit-chain.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('audit_retention');
const context = () => ({
  database: given.database(),
  stopping: new AbortController().signal,
  config: { AUDIT_RETENTION_DAYS: 30 },
});

beforeEach(async () => {
  const { db } = given.database();
  await db.execute(sql`truncate audit_entries`);
  await db.execute(sql`update audit_chain set before_seq = 0, last_seq = 0`);
});

const add = (count: number, days: number) =>
  given.database().db.execute(sql`
    insert into audit_pending (time, action)
    select now() + make_interval(days => ${days}), 'login' from generate_series(1, ${count}::int)`);

/** The numbers of the entries that are left once retention has run. */
async function retain(): Promise<number[]> {
  await appendAudit(context());
  // Each run goes as far as it must at least.
  for (let run = 0; run < 5; run++) await removeOldAudit(context());
  const rows = await given
    .database()
    .db.execute<{ seq: number }>(sql`select seq::int as seq from audit_entries order by seq`);
  return rows.map(row => row.seq);
}

test.each([1, 2_500])(
  '%d entries from a time when the clock was ahead go with what is behind them',
  async count => {
    await add(1, -500);
    await add(count, 365);
    await add(50, -400);
    await add(1, -1);
    expect(await retain()).toEqual([count + 52]);
  },
);

test('an entry from such a time is kept before one that is kept', async () => {
  await add(1, -500);
  await add(1, 365);
  await add(1, -1);
  expect(await retain()).toEqual([2, 3]);
});
