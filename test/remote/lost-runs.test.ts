import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { listProcesses, readEnvironment, signalProcess } from '../../servers/processes.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a run that the next connection does not find', form => {
  const { stack, client, sshd } = useRemoteStack(form, { workers: 2 });
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  /** A command that has printed and waits for the file GO in its home. */
  async function launchWaiting(go: string): Promise<{ id: string; record: string }> {
    const command = `echo begun; while ! test -e "$HOME/${go}"; do sleep 0.1; done; echo ended`;
    const { id } = await launchAsync(client, sid, command);
    await waitFor(async () => String(await readOutput(client, id)) === 'begun\n', {
      what: 'its first line',
    });
    const runs = join(sshd.home, '.windlass/runs');
    const fence = readFileSync(join(sshd.home, '.windlass/started', id), 'utf8');
    const directory = readdirSync(runs).find(name => name === fence.trim().split(' ')[1]);
    return { id, record: join(runs, directory ?? '', 'supervisor') };
  }

  /** Lets the record be that of another node of the same home, where the host's name leads from now on. */
  function moveElsewhere(record: string): string {
    const written = readFileSync(record, 'utf8');
    writeFileSync(record, written.replace(/^\S+/, 'login2'));
    sshd.disconnect();
    return written;
  }

  function endHostProcesses(): void {
    // sshd itself has the developer's home. Supervisors first: they would record how the others ended.
    const ours = listProcesses().filter(({ pid }) => readEnvironment(pid).HOME === sshd.home);
    const isSupervisor = ({ command }: { command: string }) => / supervise /.test(command);
    for (const { pid } of ours.filter(isSupervisor)) signalProcess(pid, 'SIGKILL');
    for (const { pid } of ours) signalProcess(pid, 'SIGKILL');
  }

  test('because it is on another node of the same home: it is followed from there', async () => {
    const { id, record } = await launchWaiting('go');
    moveElsewhere(record);
    writeFileSync(join(sshd.home, 'go'), '');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    });
    expect(String(await readOutput(client, id))).toBe('begun\nended\n');
  });

  test('because it is on another node, and is to be stopped: that node is named', async () => {
    const { id, record } = await launchWaiting('never');
    const written = moveElsewhere(record);
    await client.delete(`/api/jobs/${id}`);
    const job = await waitForEnd(client, id);
    expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
    expect(job.error?.detail).toContain('login2');
    // Once the node is reached, upkeep stops what was cancelled.
    writeFileSync(record, written);
    writeFileSync(join(sshd.home, 'never'), '');
  });

  test('because it is on another node, and is to be stopped: a later connection reaches that one', async () => {
    const { id, record } = await launchWaiting('never-reached');
    const logins = () => sshd.log().split('Accepted ').length;
    const before = logins();
    const written = moveElsewhere(record);
    await client.delete(`/api/jobs/${id}`);
    // The first one was on the wrong node.
    await waitFor(() => logins() >= before + 2, { what: 'a second connection', intervalMs: 5 });
    writeFileSync(record, written);
    const job = await waitForEnd(client, id);
    expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
    expect(job.error?.detail).not.toContain('login2');
    const isThere = ({ command }: { command: string }) => command.includes('never-reached');
    expect(listProcesses().filter(isThere)).toEqual([]);
  });

  test('because the host was started anew: that is said, and it is not run again', async () => {
    const { id, record } = await launchWaiting('never-rebooted');
    const command = `echo x >>"$HOME/rebooted"; echo begun; sleep 300`;
    const other = (await launchAsync(client, sid, command)).id;
    await waitFor(async () => (await readOutput(client, other)).length > 0, { what: 'its output' });
    // What a crash of the host may leave: of the one run its records, of the other nothing at all.
    await sshd.down();
    endHostProcesses();
    const written = readFileSync(record, 'utf8').trim().split(' ');
    writeFileSync(record, [written[0], 'an-earlier-boot', ...written.slice(2)].join(' '));
    rmSync(join(sshd.home, '.windlass/started', other));
    const sql = openStackDatabase(stack);
    await sql`update jobs set run_place = 'an-earlier-boot' where id in (${id}, ${other})`;
    await sql.end();
    // Who holds a job knows of which boot its run was.
    stack.kill('windlass-worker');
    await sshd.up();
    for (const job of [id, other]) {
      const ended = await waitForEnd(client, job);
      expect(ended).toMatchObject({ state: 'failed', error: { code: 'outcome_unknown' } });
      expect(ended.error?.detail).toContain('started anew');
      expect(String(await readOutput(client, job))).toBe('begun\n');
    }
    expect(readFileSync(join(sshd.home, 'rebooted'), 'utf8')).toBe('x\n');
  });

  test('because the host killed it with its connection: that is said, and it is not run again', async () => {
    const { id } = await launchWaiting('never-again');
    endHostProcesses();
    const job = await waitForEnd(client, id);
    expect(job).toMatchObject({ state: 'failed', error: { code: 'outcome_unknown' } });
    expect(job.error?.hint).toContain('KillUserProcesses');
    expect(String(await readOutput(client, id))).toBe('begun\n');
  });
});
