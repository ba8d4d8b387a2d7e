import { expect, test } from 'vitest';
import { describeForms } from './harness/forms.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from './harness/remote.ts';
import { missingPrograms } from './harness/skip.ts';
import { useRemoteStack } from './harness/use-stack.ts';
import { waitFor } from './harness/wait-for.ts';
import { whileHeld } from './harness/while-held.ts';

describeForms(missingPrograms('sshd'), 'If-Match of DELETE, when two come at once', form => {
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
    const answers = await whileHeld(
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
    const [answer] = await whileHeld(
      stack,
      sql => sql`update sessions set accessed = now() + interval '1 second' where sid = ${sid}`,
      () => [remove(path, tag)],
    );
    expect(answer?.status).toBe(412);
    const now = await tagOf(path);
    const answers = await Promise.all([remove(path, now), remove(path, now)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404]);
  });
});
