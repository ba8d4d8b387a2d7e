import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listProcesses, signalProcess } from '../../servers/processes.ts';
import { type FaultHost, withHost } from '../faults/fault-host.ts';
import { expectForgotten } from '../faults/host-state.ts';
import { GONE_MS, makeMark, makeTree } from '../faults/stubborn-processes.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import {
  holderOf,
  type Job,
  launchAsync,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'commands that are ended', form => {
  const service = useStack(form, { env: { LIMIT_COMMAND_SECONDS: '600' } });

  const cancel = async (id: string) => {
    const response = await service.client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
    expect(response.status).toBe(202);
  };

  test('cancel ends the whole tree within 5 s, also who left the group, hides or ignores TERM', () =>
    withHost(service, async ({ sid }) => {
      const tree = makeTree();
      const { id } = await launchAsync(service.client, sid, tree.command);
      await tree.awaitStart();
      await cancel(id);
      await tree.awaitEnd();
      expect(await waitForEnd(service.client, id, GONE_MS)).toMatchObject({ state: 'cancelled' });
      expect(String(await readOutput(service.client, id))).toBe('begun\n');
    }));

  test('a cancel that comes when the command has ended by itself meets nobody: its end is kept', () =>
    withHost(service, async host => {
      const go = `go-${makeMark()}`;
      const command = `echo begun; while ! test -e "$HOME/${go}"; do sleep 0.02; done; exit 3`;
      const { id } = await launchAsync(service.client, host.sid, command);
      await waitFor(async () => (await readOutput(service.client, id)).length > 0, {
        what: 'its first line',
      });
      const supervisor = supervisorOf(host, id);
      // The command ends, and the host is too busy to record that.
      signalProcess(supervisor, 'SIGSTOP');
      writeFileSync(join(host.sshd.home, go), '');
      const isOver = () => !listProcesses().some(({ command }) => command.includes(go));
      await waitFor(isOver, { what: 'the end of the command' });
      await cancel(id);
      // Commands of one session take the same way as its stops.
      for (let n = 0; n < 3; n++)
        await service.client.post('/api/remotes/launch', { sid: host.sid, command: 'true' });
      signalProcess(supervisor, 'SIGCONT');
      expect(await waitForEnd(service.client, id, 20_000)).toMatchObject({
        state: 'succeeded',
        result: { returncode: 3 },
      });
    }));

  test('DELETE of a session ends the trees of all of its commands within the same 5 s', () =>
    withHost(service, async host => {
      const trees = [makeTree(), makeTree(), makeTree()];
      const ids: string[] = [];
      for (const { command } of trees)
        ids.push((await launchAsync(service.client, host.sid, command)).id);
      for (const tree of trees) await tree.awaitStart();
      await service.client.delete(`/api/remotes/${host.sid}`);
      await Promise.all(trees.map(tree => tree.awaitEnd()));
      for (const id of ids)
        expect(await waitForEnd(service.client, id, GONE_MS)).toMatchObject({ state: 'cancelled' });
      await expectForgotten(host);
    }));

  test('LIMIT_COMMAND_SECONDS ends the tree and keeps the output; another worker does not begin it anew', () =>
    withHost(service, async ({ sid }) => {
      const tree = makeTree();
      const { id } = await launchAsync(service.client, sid, tree.command);
      await tree.awaitStart();
      await waitFor(async () => (await readOutput(service.client, id)).length > 0, {
        what: 'output',
      });
      // An hour passes.
      const sql = openStackDatabase(service.stack);
      await sql`update jobs set run_at = run_at - interval '1 hour' where id = ${id}`;
      await sql.end();
      process.kill(await holderOf(service.client, id), 'SIGKILL');
      const job = await waitForEnd(service.client, id, 40_000);
      expect(job).toMatchObject({ state: 'failed', error: { code: 'time_limit' } });
      expect(String(await readOutput(service.client, id))).toBe('begun\n');
      expect(tree.left()).toEqual([]);
    }));

  test('of ten commands that one session follows, one is cancelled: the others lose nothing', () =>
    withHost(service, async host => {
      const others: string[] = [];
      for (let n = 0; n < 9; n++) {
        const command = `i=0; while ! test -e "$HOME/go"; do i=$((i+1)); echo $i; echo $i >>"$HOME/ledger${n}"; sleep 0.2; done`;
        others.push((await launchAsync(service.client, host.sid, command)).id);
      }
      const tree = makeTree();
      const { id } = await launchAsync(service.client, host.sid, tree.command);
      await tree.awaitStart();
      for (const other of others)
        await waitFor(async () => (await readOutput(service.client, other)).length > 0, {
          what: 'the others to print',
          timeoutMs: 20_000,
        });
      await cancel(id);
      await tree.awaitEnd();
      expect(await waitForEnd(service.client, id, GONE_MS)).toMatchObject({ state: 'cancelled' });
      const jobs = await Promise.all(
        others.map(other => service.client.get<Job>(`/api/jobs/${other}`)),
      );
      expect(jobs.map(({ state }) => state)).toEqual(Array(9).fill('running'));
      writeFileSync(join(host.sshd.home, 'go'), '');
      for (const [n, other] of others.entries()) {
        expect(await waitForEnd(service.client, other, 20_000)).toMatchObject({
          state: 'succeeded',
        });
        const ledger = readFileSync(join(host.sshd.home, `ledger${n}`), 'utf8');
        const lines = Array.from({ length: ledger.split('\n').length - 1 }, (_, i) => `${i + 1}\n`);
        expect([ledger, String(await readOutput(service.client, other))]).toEqual([
          lines.join(''),
          lines.join(''),
        ]);
      }
    }));

  test('whose supervisor was killed: a cancel still ends the tree', () =>
    withHost(service, async host => {
      const tree = makeTree();
      const { id } = await launchAsync(service.client, host.sid, tree.command);
      await tree.awaitStart();
      signalProcess(supervisorOf(host, id), 'SIGKILL');
      await cancel(id);
      await tree.awaitEnd();
      expect(await waitForEnd(service.client, id, 20_000)).toMatchObject({ state: 'cancelled' });
      expect(String(await readOutput(service.client, id))).toBe('begun\n');
      await expectForgotten(host);
    }));
});

function supervisorOf({ sshd }: FaultHost, id: string): number {
  const runs = join(sshd.home, '.windlass/runs');
  const [, name] = readFileSync(join(sshd.home, '.windlass/started', id), 'utf8')
    .trim()
    .split(' ');
  expect(readdirSync(runs)).toContain(name);
  const [, , pid] = readFileSync(join(runs, name ?? '', 'supervisor'), 'utf8').split(' ');
  return Number(pid);
}
