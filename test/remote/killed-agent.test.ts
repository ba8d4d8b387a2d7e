import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { listProcesses, readEnvironment, signalProcess } from '../../servers/processes.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What an OOM killer or a reaper of old processes may do. */
describeStack(missingPrograms('sshd'), 'a command, one process of whose agent is killed', form => {
  const { client, sshd } = useRemoteStack(form);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  const ofHost = () => listProcesses().filter(({ pid }) => readEnvironment(pid).HOME === sshd.home);

  function runOf(id: string): string {
    const [, attempt = ''] = readFileSync(join(sshd.home, '.windlass/started', id), 'utf8').split(
      ' ',
    );
    return join(sshd.home, '.windlass/runs', attempt.trim());
  }

  const pidIn = (directory: string, file: string, field: number) =>
    Number(readFileSync(join(directory, file), 'utf8').split(' ')[field]);

  const victims: Record<string, { find(run: string): number; isUnsure?: true }> = {
    'its supervisor': { find: run => pidIn(run, 'supervisor', 2) },
    'the process that waits for it': { find: run => pidIn(run, 'waiter', 0), isUnsure: true },
    'the process that copies its output': {
      find: run => ofHost().find(({ command }) => command.includes(`of=${run}/o.`))?.pid ?? 0,
      isUnsure: true,
    },
    'the agent that serves the connection': {
      find: () => ofHost().find(({ command }) => / serve /.test(command))?.pid ?? 0,
    },
  };

  test.each(Object.entries(victims))(
    '%s: it runs on, and is followed to its end',
    async (_, one) => {
      const [go, ledger] = ['go', 'ledger'].map(name => join(sshd.home, name)) as [string, string];
      for (const file of [go, ledger]) rmSync(file, { force: true });
      const step = 'i=$((i+1)); echo $i; echo $i >>"$HOME/ledger"; sleep 0.02';
      const command = `i=0; until test -e "$HOME/go"; do ${step}; done; exit 3`;
      const { id } = await launchAsync(client, sid, command);
      await waitFor(async () => (await readOutput(client, id)).length > 0, {
        what: 'its first line',
      });
      const written = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8') : '');
      const before = written().length;
      const victim = one.find(runOf(id));
      expect(victim).toBeGreaterThan(1);
      signalProcess(victim, 'SIGKILL');
      await waitFor(() => written().length > before + 200, {
        what: 'more lines',
        timeoutMs: 60_000,
      });
      writeFileSync(go, '');
      const job = await waitForEnd(client, id);
      const output = String(await readOutput(client, id));
      if (!one.isUnsure) {
        expect(job).toMatchObject({ state: 'succeeded', result: { returncode: 3 } });
        return expect(output).toBe(written());
      }
      expect(job).toMatchObject({ state: 'failed', error: { code: 'outcome_unknown' } });
      const sure = Number(/(\d+) bytes of standard output/.exec(job.error?.detail ?? '')?.[1]);
      expect(sure).toBeGreaterThan(0);
      expect(output.slice(0, sure)).toBe(written().slice(0, sure));
    },
  );

  test('nothing of the killed ones is left on the host', async () => {
    const runs = () =>
      readdirSync(join(sshd.home, '.windlass/started')).filter(name => !name.startsWith('.'));
    for (const id of runs())
      expect(['succeeded', 'failed']).toContain((await waitForEnd(client, id)).state);
    const spoolers = () => ofHost().filter(({ command }) => / respool | dd /.test(command));
    await waitFor(() => spoolers().length === 0, { what: 'the end of those that spooled' });
  });
});
