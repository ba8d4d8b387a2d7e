import { expect, test } from 'vitest';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'windlass retention', form => {
  const { stack, client, sshd } = useRemoteStack(form, { alone: 'counts the jobs that are due' });
  const sql = useStackDatabase(stack);

  const windlass = async (args: string[], settings: Record<string, string> = {}) => {
    const { ended } = startProgram({
      args: ['dist/cli/main.js', 'retention', ...args],
      cwd: stack.dataDir,
      settings: { DATA_DIR: stack.dataDir, ...settings },
    });
    return ended;
  };
  const show = async (settings?: Record<string, string>) => {
    const { stdout, stderr } = await windlass(['show', '--json'], settings);
    expect(stderr).toBe('');
    const rules = stdout.split('\n').filter(Boolean);
    return rules.map(rule => JSON.parse(rule) as { what: string; days: number; due: number });
  };
  const jobs = (days: number, due: number) => ({ what: 'jobs', days, due });

  test('shows what is due by the settings, and removes it at once, or what is older', async () => {
    const sid = await openSession(client, sshd);
    const run = async (command: string) => {
      const { id } = await launchAsync(client, sid, command);
      return (await waitForEnd(client, id)).id;
    };
    const [old, fresh] = [await run('head -c 5000000 /dev/zero'), await run('true')];
    await sql`update jobs set finished = now() - interval '10 days', created = now() - interval '11 days' where id = ${old}`;
    expect(await show()).toMatchObject([jobs(30, 0), { what: 'sessions' }, { what: 'audit' }]);
    expect(await show({ JOB_RETENTION_DAYS: '7' })).toMatchObject([jobs(7, 1), {}, {}]);
    const table = await windlass(['show']);
    expect(table.stdout).toMatch(/^WHAT +KEPT +DUE +OLDEST +SETTING\njobs +30 days +0 +10d +JOB_/);

    expect((await windlass(['remove'])).stdout).toContain('0 jobs were removed.');
    expect((await windlass(['remove', '--days', '7', '--json'])).stdout).toBe('{"jobs":1}\n');
    const told = await client.get<{ items: { target: string }[] }>(
      '/api/audit?action=retention.remove',
    );
    expect(told.items.map(({ target }) => target)).toEqual([
      'jobs 30 days, audit 365 days',
      'jobs 7 days, audit 365 days',
    ]);
    expect((await client.fetch(`/api/jobs/${old}`)).status).toBe(404);
    expect((await client.fetch(`/api/jobs/${fresh}`)).status).toBe(200);
    await waitFor(
      async () => {
        const { storage } = await client.get<{ storage: { bytes: number } }>('/api/users/-');
        return storage.bytes < 1_000;
      },
      { what: 'the removed output to count no more' },
    );
    await client.delete(`/api/remotes/${sid}`);
  });
});
