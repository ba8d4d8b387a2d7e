import { sql as text } from 'drizzle-orm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Database, openDatabase, sqlState } from '../../shared/database/connect.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('failed_results');
/** All statements have one connection. */
let one: Database;

beforeEach(() => {
  one = openDatabase(given.url, { max: 1 });
});
afterEach(() => one.close());

/** The server sends two rows, then an error. */
const DIVIDES = 'select 6 / (3 - n) as n from generate_series(1, 4) n';
const fail = (sql: Database['sql'] = one.sql) =>
  sql.unsafe(DIVIDES).then(() => 'it ended', sqlState);

const ways: Record<string, () => Promise<unknown>> = {
  'a statement without parameters': async () => [
    ...(await one.sql.unsafe(`select 'here' as word`)),
  ],
  'a prepared statement': async () => [
    ...(await one.sql.unsafe('select $1::text as word', ['here'])),
  ],
  'a template': async () => [...(await one.sql`select ${'here'}::text as word`)],
  'the first of two statements': async () => {
    const [first = []] = await one.sql.unsafe<unknown[][]>(`select 'here' as word; select 1`);
    return [...first];
  },
  drizzle: async () => [...(await one.db.execute(text`select 'here' as word`))],
  'a builder of drizzle': () =>
    one.db.select({ word: text<string>`here.word` }).from(text`(select 'here' as word) here`),
  'a transaction': () =>
    one.sql.begin(async tx => [...(await tx.unsafe('select $1::text as word', ['here']))]),
  'a savepoint': () =>
    one.sql.begin(async tx => {
      await tx.savepoint(inner => fail(inner as never)).catch(() => {});
      return [...(await tx.unsafe('select $1::text as word', ['here']))];
    }),
};

for (const [name, ask] of Object.entries(ways))
  test(`a result that failed after some rows leaves the next one whole: ${name}`, async () => {
    for (let n = 0; n < 2; n++) {
      expect(await fail()).toBe('22012');
      expect(await ask()).toEqual([{ word: 'here' }]);
    }
    const [code, next] = await Promise.all([fail(), ask()]);
    expect([code, next]).toEqual(['22012', [{ word: 'here' }]]);
  });

test('a large result that takes too long leaves the next one whole', async () => {
  await one.sql.unsafe('set statement_timeout = 500');
  const large = `select repeat('x', 5000000), case when n > 3 then pg_sleep(10) end from generate_series(1, 4) n`;
  expect(await one.sql.unsafe(large).then(() => 'it ended', sqlState)).toBe('57014');
  expect([...(await one.sql`select ${'here'}::text as word`)]).toEqual([{ word: 'here' }]);
});
