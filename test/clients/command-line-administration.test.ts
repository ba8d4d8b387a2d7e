import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { useCommandLine } from '../harness/clients/use-command-line.ts';
import { launchAsync, openSession } from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'the command line of who looks after a service', form => {
  const { stack, sshd } = useRemoteStack(form);
  const { line, windlass, print, printJson, keyFile } = useCommandLine(stack, sshd);

  test('an administrator adds, resets, disables and removes a user', async () => {
    const mine = stack.password;
    const first = 'the first password';
    const add = ['user', 'add', 'alice', '--password-stdin'];
    expect(await print(add, `${mine}\n${first}\n`)).toBe('alice can log in.\n');
    const as = (password: string) =>
      fetch(`${stack.url}/api/users/-`, {
        headers: { Authorization: `Basic ${btoa(`alice:${password}`)}` },
      }).then(({ status }) => status);
    expect(await as(first)).toBe(200);
    const second = 'the second password';
    await print(['user', 'password', 'alice', '--password-stdin'], `${mine}\n${second}\n`);
    expect([await as(first), await as(second)]).toEqual([401, 200]);
    await print(['user', 'disable', 'alice', '--password-stdin'], mine);
    expect(await print(['user', 'list'])).toMatch(/^alice +user +disabled/m);
    expect(await as(second)).toBe(401);
    const enable = ['user', 'enable', 'alice', '--password-stdin'];
    expect(await printJson(enable, mine)).toMatchObject([{ username: 'alice', disabled: false }]);
    expect(await as(second)).toBe(200);
    const removing = ['user', 'remove', 'alice', '--password-stdin'];
    expect(await printJson(removing, mine)).toEqual([{ username: 'alice', removed: true }]);
    expect(await print(['user', 'list'])).not.toContain('alice');
    const short = await windlass(['user', 'add', 'bob', '--password-stdin'], { input: mine });
    expect(short).toMatchObject({
      code: 1,
      stderr: 'windlass: Standard input has no line with the new password.\n',
    });
  });

  test('a user who alone holds projects is removed once it is said what becomes of these', async () => {
    const mine = stack.password;
    const make = async (name: string) => {
      await print(['user', 'add', name, '--password-stdin'], `${mine}\na long password\n`);
      return new Client(stack.url, name, 'a long password');
    };
    const heir = await make('heir');
    const remove = ['user', 'remove', 'owner', '--password-stdin'];
    const own = async () => {
      const owner = await make('owner');
      for (const name of ['one', 'other']) await owner.post('/api/projects', { name });
    };
    const left = async () => (await heir.get<{ items: unknown[] }>('/api/projects')).items.length;
    await own();
    expect(await windlass(remove, { input: mine })).toMatchObject({
      code: 1,
      stderr:
        'windlass: There is no terminal to ask on. Nobody else may change 2 projects of owner. Those without readers are deleted with all data, the others are left to them. Give --delete-projects, or --give-projects-to NAME.\n',
    });
    expect(await print(['user', 'list'])).toMatch(/^owner /m);
    await print([...remove, '--give-projects-to', 'heir'], mine);
    expect(await left()).toBe(2);
    await own();
    await print([...remove, '--delete-projects'], mine);
    expect(await left()).toBe(2);
    expect(await print(['user', 'list'])).not.toMatch(/^owner /m);
  });

  test('hosts are added with their keys, trusted anew and removed', async () => {
    const mine = stack.password;
    const place = ['--address', '127.0.0.1', '--port', String(sshd.port), '--private'];
    const added = await print(
      ['host', 'add', 'other', ...place, '--trust', '--password-stdin'],
      mine,
    );
    expect(added).toMatch(/^other is 127\.0\.0\.1:\d+, with these keys; .*\n {2}SHA256:/);
    expect(await print(['host', 'list'])).toMatch(/^other +127\.0\.0\.1:\d+ +SHA256:/m);
    expect(await print(['host', 'trust', 'other', '--password-stdin'], mine)).toContain('SHA256:');
    const removing = ['host', 'remove', 'other', '--password-stdin'];
    expect(await printJson(removing, mine)).toEqual([{ name: 'other', removed: true }]);
    expect(await print(['host', 'list'])).not.toContain('other');
    expect((await windlass(['host', 'add', 'other', ...place])).stderr).toContain('--trust');
    const authority = ['--key', `@cert-authority 127.0.0.* ${sshd.hostKey}`];
    const known = await print(
      ['host', 'add', 'other', ...place, ...authority, '--password-stdin'],
      mine,
    );
    expect(known).toMatch(/\n {2}SHA256:\S+ \(the authority for 127\.0\.0\.\*\)$/m);
    await print(removing, mine);
  });

  test('a host behind another one is added with its keys, and logged in to with a key for each', async () => {
    const node = await startTestSshd();
    try {
      const mine = stack.password;
      const place = ['--address', 'localhost', '--port', String(node.port), '--jump', 'host'];
      const add = ['host', 'add', 'node', ...place, '--password-stdin'];
      expect((await windlass([...add, '--trust'], { input: mine })).stderr).toContain('--key');
      expect(await print([...add, '--key', node.hostKey], mine)).toContain(' through host, ');
      expect(await print(['host', 'list'])).toMatch(/^node +localhost:\d+ through host +SHA256:/m);
      const nodeKey = join(line.home, 'node_key');
      writeFileSync(nodeKey, node.privateKey, { mode: 0o600 });
      const keys = ['--user', node.username, '--key', nodeKey];
      const refused = await windlass(['run', 'node', ...keys, '--', 'true']);
      expect(refused.stderr).toContain('at the jump host host: ');
      expect(
        await print(['run', 'node', ...keys, '--jump-key', keyFile(), '--', 'echo there']),
      ).toBe('there\n');
    } finally {
      await node.stop();
    }
  });

  test('a token is made, works and is deleted', async () => {
    const mine = stack.password;
    const create = ['token', 'create', 'notebook', '--scope', 'read', '--password-stdin'];
    const token = (await print(create, mine)).trim();
    const use = () =>
      fetch(`${stack.url}/api/jobs`, { headers: { Authorization: `Bearer ${token}` } });
    expect((await use()).status).toBe(200);
    const all = await printJson(['token', 'list']);
    const { id } = all.find(({ name }) => name === 'notebook');
    const deleting = ['token', 'delete', id, '--password-stdin'];
    expect(await printJson(deleting, mine)).toEqual([{ id, deleted: true }]);
    expect((await use()).status).toBe(401);
  });

  test('a worker is drained, of which the doctor speaks, and works again', async () => {
    expect((await windlass(['doctor'])).stdout).not.toContain('BAD');
    for (const finding of await printJson(['doctor']))
      expect(finding).toEqual({ what: expect.any(String) });
    const [{ id }] = await printJson(['worker', 'list']);
    await print(['worker', 'drain', id, '--password-stdin'], stack.password);
    expect(await print(['worker', 'list'])).toMatch(new RegExp(`^${id} .*draining`, 'm'));
    const { code, stdout } = await windlass(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toContain(`it drains; end that: windlass worker resume ${id}`);
    const resume = ['worker', 'resume', id, '--password-stdin'];
    expect(await printJson(resume, stack.password)).toMatchObject([{ id, draining: false }]);
    await waitFor(async () => (await windlass(['doctor'])).code === 0, { what: 'a good state' });
  });

  test('a drain waits until the worker has no jobs, for a time', async () => {
    const add = ['user', 'add', 'runner', '--password-stdin'];
    await print(add, `${stack.password}\na long password\n`);
    const client = new Client(stack.url, 'runner', 'a long password');
    const sid = await openSession(client, sshd);
    const { id: job } = await launchAsync(client, sid, 'sleep 600');
    const busy = async () => {
      const workers = await printJson(['worker', 'list']);
      return workers.find(({ running }) => running > 0)?.id as string | undefined;
    };
    await waitFor(async () => (await busy()) !== undefined, { what: 'the command to run' });
    const id = (await busy()) ?? '';
    const drain = ['worker', 'drain', id, '--password-stdin'];
    const late = await windlass([...drain, '--wait', '--timeout', '1'], { input: stack.password });
    expect(late).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${id} has 1 job after 1 s, and takes no more.`),
    });
    const waiting = printJson([...drain, '--wait'], stack.password);
    await client.delete(`/api/jobs/${job}`);
    expect(await waiting).toMatchObject([{ id, draining: true, running: 0 }]);
    const alone = await windlass([...drain, '--timeout', '1'], { input: stack.password });
    expect(alone).toMatchObject({ code: 1, stderr: expect.stringContaining('--wait') });
    await print(['worker', 'resume', id, '--password-stdin'], stack.password);
  });

  test('the doctor says that no worker is alive', async () => {
    stack.kill('windlass-worker', 'SIGSTOP');
    try {
      const isSilent = async () => (await windlass(['doctor'])).code === 1;
      await waitFor(isSilent, { what: 'silence of the workers' });
      expect((await windlass(['doctor'])).stdout).toMatch(/^BAD {2}workers: none is/m);
    } finally {
      stack.kill('windlass-worker', 'SIGCONT');
    }
    await waitFor(async () => (await windlass(['doctor'])).code === 0, { what: 'a good state' });
  });

  test('the doctor says that the service is unreachable, and that a login is not good', async () => {
    const away = { WINDLASS_URL: 'http://127.0.0.1:1', WINDLASS_TOKEN: 'any' };
    const none = await windlass(['doctor'], { env: away });
    expect(none.code).toBe(1);
    expect(none.stdout).toMatch(/^BAD {2}service at http:\/\/127\.0\.0\.1:1: No answer/);
    const wrong = await windlass(['doctor'], {
      env: { WINDLASS_URL: stack.url, WINDLASS_TOKEN: 'wrong' },
    });
    expect(wrong.stdout).toMatch(/^BAD {2}your login: .*windlass login URL\.$/m);
  });
});
