import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { startCommandLine } from '../harness/clients/command-line.ts';
import {
  addHost,
  historyOf,
  isEnded,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const NO_CONNECTION = 'waiting: there is no connection to the host';

describeStack(missingPrograms('sshd'), 'a host that is unreachable', form => {
  const good = useStarted(() => startTestSshd());
  const { client, sshd } = useRemoteStack(form, { workers: 2, env: { REMOTE_SLOTS: '2' } });
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
    const unreachable = events.filter(told => told !== 'queued claimed sent ended');
    expect(new Set(unreachable)).toEqual(
      new Set(['queued claimed host_unreachable reconnected sent ended']),
    );
  });
});

describeStack(missingPrograms('sshd'), 'a host that is unreachable for a while', form => {
  const { client, sshd, stack } = useRemoteStack(form);
  const line = useStarted(startCommandLine);

  test('who follows its command learns why nothing comes, and that it goes on', async () => {
    const { url, username, password } = stack;
    const logIn = ['login', url, '--user', username, '--password-stdin'];
    expect(await line.run(logIn, { input: password })).toMatchObject({ code: 0 });
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(
      client,
      sid,
      'echo one; until test -e go; do sleep 0.1; done; echo two',
    );
    const follower = line.start(['logs', '-f', id]);
    await waitFor(() => follower.said.stdout === 'one\n', { what: 'the first line' });
    const record = async () => {
      const answer = await client.fetch(`/api/jobs/${id}`);
      return { tag: answer.headers.get('ETag'), job: (await answer.json()) as Job };
    };
    await sshd.down();
    await waitFor(() => follower.said.stderr !== '', { what: 'the reason', timeoutMs: 60_000 });
    const unreachable = await record();
    expect(unreachable.job).toMatchObject({ state: 'running', message: NO_CONNECTION });
    await sshd.up();
    const back = async () => (await record()).job.message === null;
    await waitFor(back, { what: 'the connection', timeoutMs: 30_000 });
    // A poll with the tag of before is not answered 304.
    expect((await record()).tag).not.toBe(unreachable.tag);
    writeFileSync(join(sshd.home, 'go'), '');
    expect(await follower.ended).toEqual({
      code: 0,
      stdout: 'one\ntwo\n',
      stderr: `windlass: ${NO_CONNECTION}\n`,
    });
  });

  test('its command outlasts start-up files that print for a while', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(
      client,
      sid,
      'echo one; until test -e printed; do sleep 0.1; done; echo two; exit 6',
    );
    await waitFor(async () => String(await readOutput(client, id)) === 'one\n', {
      what: 'the first line',
    });
    const files = ['.bashrc', '.profile'].map(name => join(sshd.home, name));
    for (const file of files) writeFileSync(file, 'echo noise\n');
    await sshd.down();
    await sshd.up();
    await waitFor(
      async () => (await client.get<Job>(`/api/jobs/${id}`)).message === NO_CONNECTION,
      { what: 'the job to wait', timeoutMs: 60_000 },
    );
    for (const file of files) rmSync(file);
    writeFileSync(join(sshd.home, 'printed'), '');
    expect(await waitForEnd(client, id, 60_000)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 6 },
    });
    expect(String(await readOutput(client, id))).toBe('one\ntwo\n');
  });
});

describeStack(missingPrograms('sshd'), 'a host whose shell hangs after the login', form => {
  const good = useStarted(() => startTestSshd());
  const { client, sshd } = useRemoteStack(form, { workers: 2, env: { REMOTE_SLOTS: '1' } });
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
