import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { type Job, launchAsync, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'hosts behind jump hosts', form => {
  const outer = useStarted(() => startTestSshd());
  const inner = useStarted(() => startTestSshd());
  // `host` of the stack is there, too, but nothing here is reached through it.
  const { stack, client, sshd: node } = useRemoteStack(form);
  const sql = useStackDatabase(stack);
  const strangers = makeTempDir('strangers');
  afterAll(() => strangers.remove());
  const stranger = loadOrCreateKeyPair(join(strangers.path, 'key')).public;

  const send = (method: string, path: string, body: object) =>
    client.fetch(path, { method, body: JSON.stringify(body) });
  const put = async (name: string, change: object) => {
    const answer = await send('PUT', `/api/hosts/${name}`, change);
    expect(answer.status, await answer.clone().text()).toBe(200);
    return answer.json();
  };
  /** Workers may connect to no private address themselves: what is behind a jump host is reached from there. */
  const add = (name: string, sshd: TestSshd, jump: string | null) =>
    client.post('/api/hosts', {
      name,
      address: 'localhost',
      port: sshd.port,
      keys: [sshd.hostKey],
      jump,
      private: jump === null,
    });
  const loginOf = ({ username, privateKey }: TestSshd) => ({ username, privateKey });
  const open = (hostname: string, jump?: object, sshd = node as TestSshd) =>
    send('POST', '/api/remotes', { hostname, ...loginOf(sshd), ...(jump && { jump }) });
  const sidOf = async (answer: Response) => {
    expect(answer.status, await answer.clone().text()).toBe(200);
    return ((await answer.json()) as { sid: string }).sid;
  };
  const run = (sid: string, command: string) =>
    send('POST', '/api/remotes/launch', { sid, command });

  beforeAll(async () => {
    await add('outer', outer, null);
    await add('inner', inner, 'outer');
    await add('near', node, 'outer');
    await add('far', node, 'inner');
  });

  test('a command runs, and files are read, through one jump host and through two', async () => {
    const ways = {
      near: loginOf(outer),
      far: { ...loginOf(inner), jump: loginOf(outer) },
    };
    for (const [name, jump] of Object.entries(ways)) {
      const sid = await sidOf(await open(name, jump));
      const answer = await run(sid, `echo "$HOME" | tee "$HOME/${name}"`);
      expect(await answer.json()).toMatchObject({ output: `${node.home}\n` });
      const file = await client.fetch(`/api/remotes/${sid}/file${join(node.home, name)}`);
      expect(await file.text()).toBe(`${node.home}\n`);
      expect(await client.get(`/api/remotes/${sid}`)).toMatchObject({ hostname: name });
      await client.delete(`/api/remotes/${sid}`);
    }
  });

  test('one credential is for all hosts of the way where there is no other', async () => {
    // The same account and key everywhere.
    await add('again', outer, 'outer');
    const sid = await sidOf(await open('again', undefined, outer));
    expect(await (await run(sid, 'echo same')).json()).toMatchObject({ output: 'same\n' });
    await client.delete(`/api/remotes/${sid}`);
  });

  test('a refused login says at which host, and a credential for a host that is not there is refused', async () => {
    const atJump = await expectProblem(
      await open('near', loginOf(inner)),
      403,
      'remote_authentication_failed',
    );
    expect(atJump.detail).toContain('at the jump host outer: ');
    const atEnd = await expectProblem(
      await open('near', loginOf(outer), inner),
      403,
      'remote_authentication_failed',
    );
    expect(atEnd.detail).toContain('at near: ');
    const two = { ...loginOf(outer), jump: loginOf(outer) };
    const beyond = await expectProblem(await open('near', two), 400, 'invalid_input');
    expect(beyond.detail).toContain('jump.jump: outer has no jump host');
    const none = await expectProblem(await open('host', loginOf(outer)), 400, 'invalid_input');
    expect(none.detail).toContain('jump: host has no jump host');
    const noKey = { username: 'me', privateKey: 'none' };
    const bad = await expectProblem(await open('near', noKey), 400, 'invalid_input');
    expect(bad.detail).toContain('jump.privateKey: must be a private key');
  });

  test('a key that is not pinned is refused at every hop, and named', async () => {
    const far = { ...loginOf(inner), jump: loginOf(outer) };
    for (const [name, sshd] of [
      ['outer', outer],
      ['inner', inner],
      ['far', node],
    ] as const) {
      await put(`${name}`, { keys: [stranger] });
      const problem = await expectProblem(await open('far', far), 409, 'host_key_changed');
      expect(problem.detail).toContain(`${name} shows SHA256:`);
      await put(`${name}`, { keys: [sshd.hostKey] });
    }
    await client.delete(`/api/remotes/${await sidOf(await open('far', far))}`);
  });

  test.each(['with', 'without'])(
    'another key of a jump host ends the sessions behind it, and their jobs, %s the trigger of the table',
    async trigger => {
      const sid = await sidOf(await open('far', { ...loginOf(inner), jump: loginOf(outer) }));
      const go = join(node.home, `go-${trigger}`);
      const command = `echo begun; while ! test -e "${go}"; do sleep 0.1; done`;
      const { id } = await launchAsync(client, sid, command);
      await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
      const keys = [outer.hostKey, stranger];
      if (trigger === 'with') await put('outer', { keys });
      else {
        await sql`set session_replication_role = replica`;
        await sql`update hosts set keys = ${keys} where name = 'outer'`;
        await sql`set session_replication_role = default`;
      }
      expect((await waitForEnd(client, id)).error).toMatchObject({ code: 'host_changed' });
      // It runs on there.
      writeFileSync(go, '');
      await expectProblem(await client.fetch(`/api/remotes/${sid}`), 409, 'host_changed');
      await expectProblem(await run(sid, 'true'), 409, 'host_changed');
      const [row] = await sql`select sealed from sessions where sid = ${sid}`;
      expect(row?.sealed).toBeNull();
      await put('outer', { keys: [outer.hostKey] });
    },
  );

  test('another jump host is another way: the sessions end', async () => {
    await add('moving', node, 'outer');
    const sid = await sidOf(await open('moving', loginOf(outer)));
    expect((await send('PUT', '/api/hosts/moving', { users: '*', jump: 'outer' })).status).toBe(
      200,
    );
    expect((await run(sid, 'true')).status).toBe(200);
    const moved = await put('moving', { jump: null, private: true });
    expect(moved).toMatchObject({ jump: null });
    await expectProblem(await run(sid, 'true'), 409, 'host_changed');
  });

  test('a command whose jump connection is lost is followed to its end, and ran once', async () => {
    const sid = await sidOf(await open('far', { ...loginOf(inner), jump: loginOf(outer) }));
    const command =
      'echo x >>"$HOME/ran"; for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done; echo end';
    const { id } = await launchAsync(client, sid, command);
    for (const lost of [outer, inner]) {
      const seen = (await readOutput(client, id)).length;
      await waitFor(async () => (await readOutput(client, id)).length > seen, { what: 'output' });
      lost.disconnect();
    }
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    } satisfies Partial<Job>);
    expect(String(await readOutput(client, id))).toBe('1\n2\n3\n4\n5\n6\nend\n');
    expect(readFileSync(join(node.home, 'ran'), 'utf8')).toBe('x\n');
    await client.delete(`/api/remotes/${sid}`);
  });

  test('no way leads back or is longer than four, no jump host goes that others need, and keys are given', async () => {
    const refuse = async (method: string, path: string, body: object, why: string) => {
      const problem = await expectProblem(await send(method, path, body), 400, 'invalid_input');
      expect(problem.detail).toContain(why);
    };
    const entry = { address: 'x.example', keys: [stranger] };
    await refuse('PUT', '/api/hosts/outer', { jump: 'outer' }, 'jump: leads back');
    await refuse('PUT', '/api/hosts/outer', { jump: 'far' }, 'jump: leads back');
    await refuse('POST', '/api/hosts', { ...entry, name: 'a', jump: 'gone' }, 'there is no host');
    const names = ['far', 'h1', 'h2', 'h3'];
    await client.post('/api/hosts', { ...entry, name: 'h1', jump: 'far' });
    await client.post('/api/hosts', { ...entry, name: 'h2', jump: 'h1' });
    await refuse(
      'POST',
      '/api/hosts',
      { ...entry, name: 'h3', jump: 'h2' },
      'at most 4 jump hosts',
    );
    // Nor does one in front make the ways behind too long.
    await client.post('/api/hosts', { ...entry, name: 'front', jump: null });
    await refuse('PUT', '/api/hosts/outer', { jump: 'front' }, 'at most 4 jump hosts');
    const gone = await expectProblem(
      await client.fetch('/api/hosts/inner', { method: 'DELETE' }),
      409,
      'conflict',
    );
    expect(gone.detail).toContain('inner is the jump host of far');
    const unseen = { name: 'unseen', address: 'localhost', jump: 'outer', trust: 'now' };
    await refuse('POST', '/api/hosts', unseen, 'trust: give keys');
    await refuse('PUT', '/api/hosts/far', { trust: 'now' }, 'trust: give keys');
    for (const name of [...names.slice(1, 3).reverse(), 'front'])
      await client.delete(`/api/hosts/${name}`);
  });

  test('two hosts that get each other as their jump host at once do not both get it', async () => {
    const entry = { address: 'x.example', keys: [stranger] };
    for (const name of ['left', 'right']) await client.post('/api/hosts', { ...entry, name });
    const answers = await Promise.all([
      send('PUT', '/api/hosts/left', { jump: 'right' }),
      send('PUT', '/api/hosts/right', { jump: 'left' }),
    ]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400]);
    for (const name of ['left', 'right']) await put(`${name}`, { jump: null });
  });
});
