import { expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'If-Match of DELETE, when two come at once', form => {
  const { stack, client, sshd } = useRemoteStack(form);

  const tagOf = async (path: string) => (await client.fetch(path)).headers.get('ETag') ?? '';
  const remove = (path: string, tag: string) =>
    client.fetch(path, { method: 'DELETE', headers: { 'If-Match': tag } });

  test('of two who cancel the job that both saw, one is told that it has changed', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'echo begun; sleep 600');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    const path = `/api/jobs/${id}`;
    const tag = await tagOf(path);
    const answers = await whileLocked(
      stack,
      sql => sql`select 1 from jobs where id = ${id} for update`,
      () => [remove(path, tag), remove(path, tag)],
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 412]);
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
  });

  test('a session that is used while it is to be ended stays open', async () => {
    const path = `/api/remotes/${await openSession(client, sshd)}`;
    const tag = await tagOf(path);
    const sid = path.split('/').at(-1) ?? '';
    const [answer] = await whileLocked(
      stack,
      sql => sql`update sessions set accessed = now() + interval '1 second' where sid = ${sid}`,
      () => [remove(path, tag)],
    );
    expect(answer?.status).toBe(412);
    const now = await tagOf(path);
    const answers = await Promise.all([remove(path, now), remove(path, now)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404]);
  });

  test('a user who is changed while they are to be removed stays', async () => {
    await client.post('/api/users', { username: 'changing', password: 'long enough' });
    const path = '/api/users/changing';
    const tag = await tagOf(path);
    const [answer] = await whileLocked(
      stack,
      sql => sql`update users set version = version + 1 where username = 'changing'`,
      () => [remove(path, tag)],
    );
    expect(answer?.status).toBe(412);
    expect((await remove(path, await tagOf(path))).status).toBe(204);
  });

  test('a user or a host that is made anew has not the tag of the one before', async () => {
    const user = { username: 'again', password: 'long enough' };
    const host = { name: 'again', address: 'again.example', keys: [sshd.hostKey] };
    for (const [list, body] of [
      ['users', user],
      ['hosts', host],
    ] as const) {
      const path = `/api/${list}/again`;
      await client.post(`/api/${list}`, body);
      const tag = await tagOf(path);
      expect((await remove(path, tag)).status).toBe(204);
      await client.post(`/api/${list}`, body);
      expect([list, (await remove(path, tag)).status]).toEqual([list, 412]);
      await client.delete(path);
    }
  });

  test('a bookmark has no tag: none matches, and `*` does', async () => {
    const { pid } = await makeModel(client);
    const { id } = await client.post<{ id: string }>(`/api/projects/${pid}/bookmarks`, { a: 1 });
    const path = `/api/bookmarks/${id}`;
    for (const tag of ['"x"', '""', 'W/"*"'])
      await expectProblem(await remove(path, tag), 412, 'precondition_failed');
    expect((await client.fetch(path)).status).toBe(200);
    expect((await remove(path, '*')).status).toBe(204);
    await expectProblem(await remove(path, '*'), 404, 'not_found');
  });
});
