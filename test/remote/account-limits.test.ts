import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listProcesses, readEnvironment } from '../../servers/processes.ts';
import { makeAccount } from '../harness/accounts.ts';
import { addHost, launchAsync, openSession, readOutput, waitForEnd } from '../harness/remote.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { startTestSshd, type TestSshd } from '../harness/sshd.ts';
import { startStack } from '../harness/stack.ts';
import { useStack } from '../harness/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const skip = missingRoot() ?? missingPrograms('sshd');

/** What an account allows its processes; a command must not notice that the agent has some of them. */
describeUnless(skip, 'limits of an account', () => {
  const { client } = useStack({ start: startStack });

  async function withBashrc(
    bashrc: string,
    work: (on: { sid: string; sshd: TestSshd; openAnother(): Promise<string> }) => Promise<void>,
  ): Promise<void> {
    const account = await makeAccount();
    writeFileSync(join(account.home, '.bashrc'), bashrc);
    const sshd = await startTestSshd({ account });
    try {
      const hostname = await addHost(client, sshd, { name: `limits-${sshd.port}` });
      const open = () => openSession(client, sshd, { hostname });
      const sid = await open();
      await work({ sid, sshd, openAnother: open });
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

  /** The agent's processes: neither sshd's nor those of a command, which bear its mark. */
  const weigh = (home: string) =>
    listProcesses().filter(({ pid, command }) => {
      const environment = readEnvironment(pid);
      return environment.HOME === home && !environment.WINDLASS_RUN && !/^sshd|sftp/.test(command);
    });

  test('a session has at most 6 processes, and 4 for each command', () =>
    withBashrc('', async ({ sid, sshd }) => {
      await launch(sid, 'true');
      await waitFor(() => weigh(sshd.home).length <= 6, { what: 'an idle session of 6' });
      const ids: string[] = [];
      for (let n = 0; n < 4; n++)
        ids.push(
          (await launchAsync(client, sid, 'echo begun; until test -e go; do sleep 0.1; done')).id,
        );
      for (const id of ids)
        await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'a line' });
      // The clock of the session sleeps in a process of its own.
      await waitFor(() => weigh(sshd.home).length <= 6 + 4 * 4 + 1, {
        what: 'four commands of 4 each',
        timeoutMs: 30_000,
      });
      writeFileSync(join(sshd.home, 'go'), '');
      for (const id of ids) await waitForEnd(client, id);
    }));

  const command = 'seq 3 | sort -r | tail -n 1; echo to stderr >&2; exit 2';
  const right = { output: '1\n', errors: 'to stderr\n', returncode: 2 };

  test('with `ulimit -u 30` commands in turn and in parallel all run, and show nothing of it', () =>
    withBashrc('ulimit -u 30\n', async ({ sid }) => {
      for (let n = 0; n < 10; n++) expect(await launch(sid, command)).toMatchObject(right);
      const crowd = await Promise.all(Array.from({ length: 8 }, () => launch(sid, command)));
      for (const answer of crowd) expect(answer).toMatchObject(right);
    }));

  test('nor do the commands of two sessions of the account', () =>
    withBashrc('ulimit -u 30\n', async ({ sid, openAnother }) => {
      const sids = [sid, await openAnother()];
      for (const each of [...sids, ...sids])
        expect(await launch(each, command)).toMatchObject(right);
      const crowd = await Promise.all(
        [...sids, ...sids, ...sids].map(each => launch(each, command)),
      );
      for (const answer of crowd) expect(answer).toMatchObject(right);
    }));
});
