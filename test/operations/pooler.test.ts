import { expect, test } from 'vitest';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { generateSealKeys } from '../../shared/secrets/secrets.ts';
import { readSettings } from '../harness/databases/database.ts';
import { startPgBouncer } from '../harness/databases/pgbouncer.ts';
import { startTestPostgres } from '../harness/databases/postgres-server.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';

const NEEDED = missingPrograms('pgbouncer', 'sshd');
/** What an operator may have added: then PgBouncer refuses nothing, and keeps nothing. */
const IGNORING = {
  ignore_startup_parameters:
    'statement_timeout,idle_in_transaction_session_timeout,default_transaction_isolation,enable_seqscan,extra_float_digits',
};

const MISSING =
  'windlass: DATABASE_URL leads to a connection pooler, which keeps neither LISTEN nor locks: set DATABASE_DIRECT_URL to the PostgreSQL server itself\n';

describeUnless(NEEDED, 'the start behind a pooler of transactions', () => {
  const server = useStarted(() => startTestPostgres());
  const run = async (program: string, settings: Record<string, string>) => {
    const { publicKey } = await generateSealKeys();
    const keys = { SECRET_KEY: 'k'.repeat(32), SEAL_PUBLIC_KEY: publicKey };
    const args = program.split(' ');
    const { code, stderr } = await startProgram({
      args,
      cwd: '/',
      settings: { ADMIN_PASSWORD: 'long-enough', LOG_LEVEL: 'silent', ...keys, ...settings },
    }).ended;
    return { code, stderr };
  };

  for (const [name, settings] of Object.entries({ refusing: {}, ignoring: IGNORING }))
    test(`says that DATABASE_DIRECT_URL is missing (PgBouncer ${name} settings)`, async () => {
      const url = await server.createDatabase(`missing_${name}`);
      await migrateDatabase(url);
      const pooler = await startPgBouncer(url, settings);
      try {
        for (const program of ['dist/cli/main.js migrate', 'dist/api/main.js'])
          expect(await run(program, { DATABASE_URL: pooler.url })).toEqual({
            code: 1,
            stderr: MISSING,
          });
      } finally {
        await pooler.stop();
      }
    });

  test('says that DATABASE_DIRECT_URL leads to a pooler too', async () => {
    const pooler = await startPgBouncer(await server.createDatabase('both'));
    try {
      const settings = { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: pooler.url };
      const { code, stderr } = await run('dist/cli/main.js migrate', settings);
      expect(stderr).toMatch(/^windlass: DATABASE_DIRECT_URL leads to a pooler of transactions/);
      expect(code).toBe(1);
    } finally {
      await pooler.stop();
    }
  });

  test('says which settings the connections of the pooler lack', async () => {
    const url = await server.createDatabase('lacking');
    await migrateDatabase(url);
    const pooler = await startPgBouncer(url);
    try {
      const settings = { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: url };
      const { code, stderr } = await run('dist/api/main.js', settings);
      expect(stderr).toMatch(
        /^windlass: DATABASE_URL: the pooler's connections lack statement_timeout = 10s, .*`windlass migrate`.*RECONNECT/,
      );
      expect(code).toBe(1);
    } finally {
      await pooler.stop();
    }
  });
});

describeForms(NEEDED, 'behind a pooler of transactions', form => {
  test('jobs, streams and migrations work with DATABASE_DIRECT_URL', async () => {
    const server = await startTestPostgres();
    const direct = await server.createDatabase('windlass');
    const pooler = await startPgBouncer(direct);
    const sshd = await startTestSshd();
    const env = { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: direct };
    const stack = await startStack({ form: form.name, env });
    try {
      const client = connectClient(stack);
      await addHost(client, sshd);
      const sid = await openSession(client, sshd);
      const jobs = await Promise.all(
        Array.from({ length: 40 }, (_, n) => launchAsync(client, sid, `echo ${n}; exit 3`)),
      );
      for (const { id } of jobs)
        expect(await waitForEnd(client, id)).toMatchObject({ result: { returncode: 3 } });
      const settings = { ...(await readSettings(stack)), ...env };
      for (const command of ['audit verify', 'keys rotate']) {
        const args = ['dist/cli/main.js', ...command.split(' ')];
        const { code, stderr } = await startProgram({ args, cwd: '/', settings }).ended;
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      }
      expect(stack.log()).not.toMatch(/prepared statement|"level":[56]0/);
    } finally {
      await stack.stop();
      await pooler.stop();
      await server.stop();
      await sshd.stop();
    }
  });
});
