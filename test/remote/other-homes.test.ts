import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const UNKNOWN = { state: 'failed', error: { code: 'outcome_unknown' } };

describeStack(missingPrograms('sshd'), 'a run whose fence is not where it was', form => {
  const { client, sshd } = useRemoteStack(form);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  /** A command that counts how often it is run, and waits for the file `name`.go in its home. */
  async function launchCounting(name: string): Promise<string> {
    const command = `echo x >>"$HOME/${name}"; echo begun; while ! test -e "$HOME/${name}.go"; do sleep 0.1; done`;
    const { id } = await launchAsync(client, sid, command);
    await waitFor(async () => String(await readOutput(client, id)) === 'begun\n', {
      what: 'its first line',
    });
    return id;
  }
  const timesRun = (name: string) => readFileSync(join(sshd.home, name), 'utf8').length / 2;

  test('because the host is another one of the same kernel now, as of containers: it is not run again', async () => {
    const id = await launchCounting('recreated');
    await sshd.down();
    renameSync(join(sshd.home, '.windlass'), join(sshd.home, 'of-the-first'));
    await sshd.up();
    expect(await waitForEnd(client, id)).toMatchObject(UNKNOWN);
    expect(timesRun('recreated')).toBe(1);
    writeFileSync(join(sshd.home, 'recreated.go'), '');
  });

  test('because somebody moved the fences away while it was followed: it is not called never started', async () => {
    const id = await launchCounting('moved');
    const started = join(sshd.home, '.windlass/started');
    renameSync(started, `${started}-elsewhere`);
    expect(await waitForEnd(client, id)).toMatchObject(UNKNOWN);
    expect(timesRun('moved')).toBe(1);
    writeFileSync(join(sshd.home, 'moved.go'), '');
  });

  test('because somebody removed it: it is not run again; of a cancelled one it is said that it may run on', async () => {
    const [id, cancelled] = [await launchCounting('left'), await launchCounting('cancelled')];
    await sshd.down();
    // At once: what goes on there would put new files into it meanwhile.
    renameSync(join(sshd.home, '.windlass'), join(sshd.home, 'removed'));
    rmSync(join(sshd.home, 'removed'), { recursive: true, maxRetries: 10, retryDelay: 50 });
    await client.delete(`/api/jobs/${cancelled}`);
    await sshd.up();
    expect(await waitForEnd(client, id)).toMatchObject(UNKNOWN);
    const job = await waitForEnd(client, cancelled);
    expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
    expect(job.error?.detail).toContain('may run on');
    expect([timesRun('left'), timesRun('cancelled')]).toEqual([1, 1]);
    for (const name of ['left.go', 'cancelled.go']) writeFileSync(join(sshd.home, name), '');
  });
});
