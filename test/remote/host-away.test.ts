import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import {
  addHost,
  historyOf,
  isEnded,
  type Job,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a host that is away', form => {
  const good = useStarted(() => startTestSshd());
  const { client, sshd } = useRemoteStack(form, { env: { REMOTE_SLOTS: '2' } });
  beforeAll(async () => {
    await addHost(client, good, { name: 'good' });
  });

  test('its commands give their slots to others, and run once each when it is back', async () => {
    const sid = await openSession(client, sshd);
    const other = await openSession(client, good, { hostname: 'good' });
    await sshd.down();
    const waiting: Job[] = [];
    for (let n = 0; n < 12; n++)
      waiting.push(await launchAsync(client, sid, `echo ${n} >>"$HOME/ran"`));
    const { id } = await launchAsync(client, other, 'echo here');
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
    const jobs = await Promise.all(waiting.map(job => client.get<Job>(`/api/jobs/${job.id}`)));
    expect(jobs.filter(isEnded)).toEqual([]);
    await sshd.up();
    for (const job of waiting)
      expect(await waitForEnd(client, job.id)).toMatchObject({ state: 'succeeded', error: null });
    const ran = readFileSync(join(sshd.home, 'ran'), 'utf8').trim().split('\n').map(Number);
    expect(ran.toSorted((a, b) => a - b)).toEqual(waiting.map((_, n) => n));
    const histories = await Promise.all(waiting.map(job => historyOf(client, job.id)));
    const events = histories.map(history => history.map(({ event }) => event).join(' '));
    // Some were not claimed before the host was back.
    const away = events.filter(told => told !== 'queued claimed sent ended');
    expect(new Set(away)).toEqual(
      new Set(['queued claimed host_unreachable reconnected sent ended']),
    );
  });
});

describeStack(missingPrograms('sshd'), 'a host whose shell hangs after the login', form => {
  const good = useStarted(() => startTestSshd());
  const { client, sshd } = useRemoteStack(form, { env: { REMOTE_SLOTS: '1' } });
  beforeAll(async () => {
    await addHost(client, good, { name: 'good' });
  });

  test('its command gives its slot to others, and runs once when the shell goes on', async () => {
    const hung = join(sshd.home, 'hung');
    const hang = 'while test -e "$HOME/hung"; do sleep 0.1; done\n';
    for (const file of ['.bashrc', '.profile']) writeFileSync(join(sshd.home, file), hang);
    const sid = await openSession(client, sshd);
    const other = await openSession(client, good, { hostname: 'good' });
    await sshd.down();
    writeFileSync(hung, '');
    await sshd.up();
    const waiting = await launchAsync(client, sid, 'echo 1 >>"$HOME/ran"');
    await waitFor(
      async () => (await client.get<Job>(`/api/jobs/${waiting.id}`)).state === 'running',
      { what: 'the attempt' },
    );
    const { id } = await launchAsync(client, other, 'echo here');
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
    rmSync(hung);
    expect(await waitForEnd(client, waiting.id)).toMatchObject({ state: 'succeeded' });
    expect(readFileSync(join(sshd.home, 'ran'), 'utf8')).toBe('1\n');
  });
});
