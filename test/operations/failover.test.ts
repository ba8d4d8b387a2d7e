import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { finderOf } from '../../shared/database/primary.ts';
import { startReplicatedPostgres } from '../harness/databases/replicated-postgres.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  addHost,
  connectClient,
  type Job,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { startProgram } from '../harness/run-program.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeForms(missingPrograms('sshd'), 'a DATABASE_URL of two hosts', form => {
  test('fails over to the one that is promoted: accepted jobs end, each runs once', async () => {
    const databases = await startReplicatedPostgres();
    const sshd = await startTestSshd();
    const directory = makeTempDir('failover');
    const url = databases.url('postgres');
    const stack = await startStack({ form: form.name, env: { DATABASE_URL: url } });
    try {
      const client = connectClient(stack);
      await addHost(client, sshd);
      const sid = await openSession(client, sshd);
      const trace = (n: number) => join(directory.path, String(n));
      const launch = (n: number, seconds: number): Promise<Job> =>
        launchAsync(client, sid, `echo run >> ${trace(n)}; sleep ${seconds}; exit 3`);
      const running = await Promise.all(Array.from({ length: 8 }, (_, n) => launch(n, 5)));
      const begun = () => running.every((_, n) => existsSync(trace(n)));
      await waitFor(begun, { what: 'the commands to run' });
      // Accepted a moment before.
      const late = await Promise.all(Array.from({ length: 8 }, (_, n) => launch(8 + n, 0)));
      await databases.killPrimary();
      await databases.promote();
      const isBack = async () => (await client.fetch('/readyz')).ok;
      await waitFor(isBack, { what: 'the service to be ready again', timeoutMs: 30_000 });
      const after = await waitFor(() => launch(16, 0).catch(() => undefined), {
        what: 'a launch to be accepted',
        timeoutMs: 30_000,
      });
      for (const { id } of [...running, ...late, after])
        expect(await waitForEnd(client, id)).toMatchObject({ result: { returncode: 3 } });
      for (let n = 0; n < 17; n++) expect(readFileSync(trace(n), 'utf8')).toBe('run\n');

      const { code, stdout } = await startProgram({
        args: ['dist/cli/main.js', 'migrate'],
        cwd: directory.path,
        settings: { DATABASE_URL: url, ADMIN_PASSWORD: stack.password },
      }).ended;
      expect(stdout).toMatch(/The database is up to date\.\n$/);
      expect(code).toBe(0);

      // One that was promoted wins over one that comes back and believes that it is the primary.
      await databases.restartOldPrimary();
      finderOf(url).forget();
      const find = () =>
        finderOf(url)
          .find()
          .catch(() => undefined);
      const place = await waitFor(find, { what: 'a primary that answers' });
      expect(place?.port).toBe(Number(new URL(databases.standbyUrl('postgres')).port));
      const sql = postgres(databases.standbyUrl('postgres'), { max: 1 });
      const [row] = await sql`select count(*)::int as n from jobs where kind = 'command'`;
      await sql.end();
      expect(row?.n).toBe(17);
    } finally {
      await stack.stop();
      await databases.stop();
      await sshd.stop();
      directory.remove();
    }
  });
});
