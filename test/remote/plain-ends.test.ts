import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { findMarked, GONE_MS, makeMark } from '../faults/stubborn-processes.ts';
import { type Account, makeAccount } from '../harness/clients/accounts.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import type { Stack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** sshd passes signals on to commands that are not forced ones, which the harness's are where it makes no account. */
const skip = missingRoot() ?? missingPrograms('sshd');

describeStack(skip, 'commands that are ended without an agent', form => {
  let stack: Stack;
  let client: Client;
  let account: Account;
  let sshd: TestSshd;
  let forced: TestSshd;
  let sid: string;

  beforeAll(async () => {
    account = await makeAccount();
    [stack, sshd, forced] = await Promise.all([
      form.start({ env: { LIMIT_COMMAND_SECONDS: '6' } }),
      startTestSshd({ account }),
      startTestSshd(),
    ]);
    client = connectClient(stack);
    await addHost(client, sshd);
    await addHost(client, forced, { name: 'forced' });
    sid = await openSession(client, sshd, { agent: false });
  });
  afterAll(async () => {
    await stack?.stop();
    await sshd?.stop();
    await forced?.stop();
    await account?.remove();
  });

  /** A command that prints, ignores TERM and has a child in its group that does. */
  const stubborn = (mark: string) =>
    `trap "" TERM; sleep ${mark} >/dev/null 2>&1 & echo begun; sleep ${mark}`;

  /** Starts it and waits until both of its processes run. */
  async function launchStubborn(session: string, mark: string): Promise<string> {
    const { id } = await launchAsync(client, session, stubborn(mark));
    const sleeping = () => findMarked(mark).filter(line => /^\d+ sleep /.test(line)).length;
    await waitFor(() => sleeping() === 2, { what: 'the command to run', timeoutMs: 20_000 });
    return id;
  }

  test('one that dies of a signal has its number, or 255 where sshd does not name it', async () => {
    const kill = async (name: string) => {
      const body = { sid, command: `kill -${name} $$` };
      return (await client.post<{ returncode: number }>('/api/remotes/launch', body)).returncode;
    };
    expect([await kill('SEGV'), await kill('BUS')]).toEqual([139, 255]);
  });

  test('cancel ends its group on the host within 5 s', async () => {
    const mark = makeMark();
    const id = await launchStubborn(sid, mark);
    await client.delete(`/api/jobs/${id}`);
    await waitFor(() => findMarked(mark).length === 0, { what: 'its end', timeoutMs: GONE_MS });
    expect(await waitForEnd(client, id, GONE_MS)).toMatchObject({
      state: 'cancelled',
      error: { code: 'cancelled', detail: 'Cancelled.' },
    });
    expect(String(await readOutput(client, id))).toBe('begun\n');
  });

  test('DELETE of its session does the same', async () => {
    const mark = makeMark();
    const other = await openSession(client, sshd, { agent: false });
    const id = await launchStubborn(other, mark);
    await client.delete(`/api/remotes/${other}`);
    await waitFor(() => findMarked(mark).length === 0, { what: 'its end', timeoutMs: GONE_MS });
    expect((await waitForEnd(client, id, GONE_MS)).state).toBe('cancelled');
  });

  test('LIMIT_COMMAND_SECONDS does the same, and its launch says so', async () => {
    const mark = makeMark();
    const response = await client.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({ sid, command: stubborn(mark) }),
    });
    const id = response.headers.get('Location')?.split('/').at(-1) ?? '';
    await expectProblem(response, 400, 'time_limit');
    expect(String(await readOutput(client, id))).toBe('begun\n');
    await waitFor(() => findMarked(mark).length === 0, { what: 'its end' });
  });

  test('on a host that passes no signals on, the job says that the command may run on', async () => {
    const mark = makeMark();
    const plain = await openSession(client, forced, { hostname: 'forced', agent: false });
    const id = await launchStubborn(plain, mark);
    await client.delete(`/api/jobs/${id}`);
    const job = await waitForEnd(client, id, GONE_MS);
    expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
    expect(job.error?.detail).toContain('may run on');
    expect(findMarked(mark)).not.toEqual([]);
  });
});
