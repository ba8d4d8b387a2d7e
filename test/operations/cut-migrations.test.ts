import { describe, expect, test } from 'vitest';
import { isIndexValid, pidOf, useMigrations } from '../harness/databases/migrations.ts';

const ROWS = 5_500;

describe('migrations that are cut', () => {
  const { server, connect, write, migrate, startMigrating, kill, ...until } = useMigrations();
  const { untilSaid, untilItWaits, untilGone } = until;

  test.each(['the process and its connection are', 'the process alone is', 'the server is'])(
    'build the index again, or find it built: %s killed in its middle',
    async what => {
      const [sql, holder] = [connect(), connect()];
      await sql`create table t (n integer)`;
      write([
        'insert into t values (7)',
        'create index concurrently t_n on t (n)',
        'insert into t values (8)',
      ]);
      await holder`begin`;
      await holder`insert into t values (1)`;
      const child = startMigrating();
      const pid = await untilItWaits(sql);
      expect(await isIndexValid(sql)).toBe(false);
      if (what === 'the server is') {
        await server.down();
        await kill(child);
        await server.up();
      } else {
        await kill(child);
        if (what.includes('connection')) {
          await sql`select pg_terminate_backend(${pid}::int)`;
          await untilGone(sql, pid);
          expect(await isIndexValid(sql)).toBe(false);
        }
        await holder`rollback`;
      }
      await migrate();
      const after = connect();
      expect(await isIndexValid(after)).toBe(true);
      expect((await after`select n from t order by n`).map(({ n }) => n)).toEqual([7, 8]);
    },
  );

  test('do not mind that the index is dropped already', async () => {
    const [sql, holder] = [connect(), connect()];
    await sql`create table t (n integer)`;
    await sql`create index t_n on t (n)`;
    write(['drop index concurrently t_n']);
    await holder`begin`;
    await holder`insert into t values (1)`;
    const child = startMigrating();
    const pid = await untilItWaits(sql);
    await kill(child);
    await holder`commit`;
    await untilGone(sql, pid);
    expect(await isIndexValid(sql)).toBe(undefined);
    await migrate();
  });

  test.each(['process', 'server'])(
    'move data in batches, each row once: the %s is killed between two',
    async what => {
      const [sql, holder] = [connect(), connect()];
      await sql`create table t (id text primary key, n integer not null)`;
      await sql`insert into t select lpad(i::text, 8, '0'), 0 from generate_series(1, ${ROWS}) i`;
      write(['-- batches: t by id\nupdate t set n = n + 1 where id = any($1)']);
      await holder`begin`;
      // In the third batch.
      await holder`select from t where id = '00002500' for update`;
      const child = startMigrating();
      await untilSaid(new RegExp(`1 of 1, waits for a lock of process ${await pidOf(holder)} `));
      const changed = await sql`select count(*)::int as n from t where n = 1`;
      expect(changed).toEqual([{ n: 2_000 }]);
      if (what === 'server') {
        await server.down();
        await kill(child);
        await server.up();
      } else {
        await kill(child);
        await holder`rollback`;
      }
      await migrate();
      const groups = await connect()`select n, count(*)::int from t group by n`;
      expect(groups).toEqual([{ n: 1, count: ROWS }]);
    },
  );
});
