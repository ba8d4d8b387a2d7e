import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listProcesses, readEnvironment } from '../../servers/processes.ts';
import { makeAccount } from '../harness/clients/accounts.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  addHost,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const skip = missingRoot() ?? missingPrograms('sshd');

const WORKERS = 2;
const IDLE = WORKERS * 6;

/** What an account allows its processes; a command must not notice that the agent has some of them. */
describeUnless(skip, 'limits of an account', () => {
  const { client } = useStack({ start: startStack });

  async function withBashrc(
    bashrc: string,
    work: (on: { sid: string; sshd: TestSshd; uid: number }) => Promise<void>,
  ): Promise<void> {
    const account = await makeAccount();
    writeFileSync(join(account.home, '.bashrc'), bashrc);
    const sshd = await startTestSshd({ account });
    try {
      const hostname = await addHost(client, sshd, { name: `limits-${sshd.port}` });
      const sid = await openSession(client, sshd, { hostname });
      await work({ sid, sshd, uid: account.uid });
      await client.delete(`/api/remotes/${sid}`);
    } finally {
      await sshd.stop();
      await account.remove();
    }
  }

  const launch = (sid: string, command: string) =>
    client.post<{ output: string; errors: string; returncode: number }>('/api/remotes/launch', {
      sid,
      command,
    });

  /** The agent's processes: neither sshd's nor those of a command, which bear its mark. */
  const weigh = (home: string) =>
    listProcesses().filter(({ pid, command }) => {
      const environment = readEnvironment(pid);
      return environment.HOME === home && !environment.WINDLASS_RUN && !/^sshd|sftp/.test(command);
    });

  test('`ulimit -f` does not hold for output, as over plain ssh', () =>
    withBashrc('ulimit -f 100\n', async ({ sid }) => {
      const { id } = await launchAsync(client, sid, 'seq 200000; echo over >&2; exit 5');
      expect(await waitForEnd(client, id)).toMatchObject({
        state: 'succeeded',
        result: { returncode: 5 },
      });
      const whole = Array.from({ length: 200_000 }, (_, n) => `${n + 1}\n`).join('');
      expect(String(await readOutput(client, id)) === whole).toBe(true);
      expect(String(await readOutput(client, id, 'stderr'))).toBe('over\n');
      // The command itself meets it.
      expect(await launch(sid, 'head -c 200000 /dev/zero >file; wc -c <file')).toMatchObject({
        output: expect.stringMatching(/^10\d{4}\n$/),
      });
    }));

  test('`ulimit -f` below the input of a command is an error of that command alone', () =>
    withBashrc('ulimit -f 100\n', async ({ sid, sshd }) => {
      for (let n = 0; n < 3; n++) {
        const answer = await client.fetch('/api/remotes/launch', {
          method: 'POST',
          body: JSON.stringify({ sid, command: 'wc -c', stdin: 'x'.repeat(300_000) }),
        });
        const problem = await expectProblem(answer, 400, 'remote_disk_full');
        expect(problem.hint).toContain('ulimit -f');
      }
      // A run that was refused leaves nothing behind.
      const attempts = () => readdirSync(join(sshd.home, '.windlass', 'runs'));
      await waitFor(() => weigh(sshd.home).length <= IDLE && attempts().length <= WORKERS, {
        what: 'an idle session',
      });
      expect(await launch(sid, 'echo works')).toMatchObject({ output: 'works\n' });
    }));

  test.skipIf(missingPrograms('python3'))(
    'threads of a command take places of the account: the next one waits for them',
    () =>
      withBashrc('ulimit -u 80\n', async ({ sid, sshd }) => {
        writeFileSync(
          join(sshd.home, 'threads.py'),
          `import os, threading, time
def wait():
    while not os.path.exists('go'): time.sleep(0.1)
n = 0
while n < 56:
    try:
        threading.Thread(target=wait).start()
        n += 1
    except RuntimeError: # processes of an account that had the same id are about to end
        time.sleep(0.1)
print('begun', flush=True)
`,
        );
        const first = await launchAsync(client, sid, 'exec python3 threads.py');
        await waitFor(async () => String(await readOutput(client, first.id)) === 'begun\n', {
          what: 'the threads',
        });
        const { worker } = await client.get<Job>(`/api/jobs/${first.id}`);
        const many = 'touch many; for i in $(seq 25); do sleep 0.5 & done; wait; echo all';
        const hasStarted = () => existsSync(join(sshd.home, 'many'));
        // Who runs nothing of the account may not wait: nothing that it knows of would give places back.
        const launchThere = async () => {
          const { id } = await launchAsync(client, sid, many);
          const job = await waitFor(
            async () => {
              const found = await client.get<Job>(`/api/jobs/${id}`);
              return found.state === 'queued' ? undefined : found;
            },
            { what: 'a worker to take it' },
          );
          if (job.worker === worker) return job;
          await waitForEnd(client, id);
          rmSync(join(sshd.home, 'many'), { force: true });
          return undefined;
        };
        const next = await waitFor(launchThere, { what: 'the worker that runs the threads' });
        // Commands start within 100 ms, if they do not wait for a place.
        const until = performance.now() + 2_000;
        await waitFor(() => hasStarted() || performance.now() > until, { what: '2 s' });
        expect(hasStarted()).toBe(false);
        writeFileSync(join(sshd.home, 'go'), '');
        expect(await waitForEnd(client, next.id)).toMatchObject({ state: 'succeeded' });
        expect(String(await readOutput(client, next.id, 'stderr'))).toBe('');
        expect(String(await readOutput(client, next.id))).toBe('all\n');
        await waitForEnd(client, first.id);
      }),
  );

  test('a session has at most 6 processes for each worker that serves it, and 4 for each command', () =>
    withBashrc('', async ({ sid, sshd }) => {
      await launch(sid, 'true');
      await waitFor(() => weigh(sshd.home).length <= IDLE, { what: 'an idle session' });
      const ids: string[] = [];
      for (let n = 0; n < 4; n++)
        ids.push(
          (await launchAsync(client, sid, 'echo begun; until test -e go; do sleep 0.1; done')).id,
        );
      for (const id of ids)
        await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'a line' });
      // The clocks of the session sleep in processes of their own.
      await waitFor(() => weigh(sshd.home).length <= IDLE + 4 * 4 + WORKERS, {
        what: 'four commands of 4 each',
        timeoutMs: 30_000,
      });
      writeFileSync(join(sshd.home, 'go'), '');
      for (const id of ids) await waitForEnd(client, id);
    }));
});
