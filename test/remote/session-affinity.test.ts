import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  holderOf,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const SLOTS = 3;

describeStack(missingPrograms('sshd'), 'the jobs of a session and its connection', form => {
  const { client, sshd } = useRemoteStack(form, {
    workers: 2,
    env: { REMOTE_SLOTS: String(SLOTS) },
  });

  const logins = () => sshd.log().split('Accepted publickey').length - 1;
  /** Started at one moment: the queue gives them to whoever asks. */
  const launchMany = (sid: string, count: number, command: string) =>
    Promise.all(Array.from({ length: count }, () => launchAsync(client, sid, command)));

  test('the first command of a session is done where the session was opened', async () => {
    const before = logins();
    for (let n = 1; n <= 8; n++) {
      const sid = await openSession(client, sshd);
      const { output } = await client.post<{ output: string }>('/api/remotes/launch', {
        sid,
        command: 'echo here',
      });
      expect(output).toBe('here\n');
      // Whichever of the two workers the queue gave it to; one that answers late once may lose it. By chance half would.
      expect(logins() - before - n).toBeLessThanOrEqual(1);
      await client.delete(`/api/remotes/${sid}`);
    }
  });

  test('a busy session is served by both workers', async () => {
    const before = logins();
    const sid = await openSession(client, sshd);
    // All that one user is given, which is more than one worker has slots.
    const work = () => launchMany(sid, 2 * SLOTS - 1, 'sleep 600');
    const untilAllRun = (jobs: Job[]) =>
      waitFor(
        async () => {
          const states = await Promise.all(jobs.map(job => client.get<Job>(`/api/jobs/${job.id}`)));
          return states.every(job => job.state === 'running');
        },
        { what: 'all to be at work' },
      );
    const end = async (jobs: Job[]) => {
      for (const job of jobs) await client.delete(`/api/jobs/${job.id}`);
      for (const job of jobs) expect((await waitForEnd(client, job.id)).state).toBe('cancelled');
    };
    // The worker without a connection offers what it gets of these, and connects when it gets the second.
    const first = await work();
    await untilAllRun(first);
    await waitFor(() => logins() - before === 2, { what: 'the other to connect' });
    await end(first);
    const jobs = await work();
    await untilAllRun(jobs);
    const holders = await Promise.all(jobs.map(job => holderOf(client, job.id)));
    expect(new Set(holders).size).toBe(2);
    await end(jobs);
  });

  test('where the connected worker does not answer, the other does the job', async () => {
    const sid = await openSession(client, sshd);
    const first = await launchAsync(client, sid, 'sleep 600');
    const connected = await holderOf(client, first.id);
    process.kill(connected, 'SIGSTOP');
    try {
      const job = await launchAsync(client, sid, 'echo here');
      const ended = await waitForEnd(client, job.id);
      expect(ended).toMatchObject({ state: 'succeeded', result: { returncode: 0 } });
    } finally {
      process.kill(connected, 'SIGCONT');
    }
    await client.delete(`/api/jobs/${first.id}`);
    expect((await waitForEnd(client, first.id)).state).toBe('cancelled');
  });

  test('a worker that stops leaves what it was handed to the other', async () => {
    const jobs: Job[] = [];
    for (let n = 0; n < SLOTS; n++) {
      const sid = await openSession(client, sshd);
      const command = 'until [ -e "$HOME/left" ]; do sleep 0.1; done; echo whole';
      jobs.push(await launchAsync(client, sid, command));
    }
    const holders = await Promise.all(jobs.map(job => holderOf(client, job.id)));
    const [stopped = 0] = holders;
    process.kill(stopped, 'SIGTERM');
    for (const [n, { id }] of jobs.entries()) {
      if (holders[n] !== stopped) continue;
      await waitFor(async () => (await holderOf(client, id)) !== stopped, {
        what: 'the other to take it up',
      });
    }
    writeFileSync(join(sshd.home, 'left'), '');
    for (const job of jobs) {
      const ended = await waitForEnd(client, job.id);
      expect(ended).toMatchObject({ state: 'succeeded', result: { returncode: 0 } });
      expect(String(await readOutput(client, job.id))).toBe('whole\n');
    }
  });
});
