import { expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

describeStack(missingPrograms('sshd'), 'a video that is asked for again', form => {
  const { client, sshd } = useRemoteStack(form);

  test('under its Idempotency-Key is the same, though session and project have ended', async () => {
    const sid = await openSession(client, sshd);
    const { pid: project } = await makeModel(client);
    const key = newId();
    const ask = async () => {
      const answer = await client.fetch(`/api/remotes/${sid}/videos`, {
        method: 'POST',
        headers: { 'Idempotency-Key': key },
        body: JSON.stringify({
          'content-type': 'video/mp4',
          images: ['/nowhere'],
          project,
          key: 'video',
        }),
      });
      return { status: answer.status, ...((await answer.json()) as { job: string }) };
    };
    const first = await ask();
    expect(first.status).toBe(202);
    await waitForEnd(client, first.job);
    await client.delete(`/api/remotes/${sid}`);
    await client.delete(`/api/projects/${project}`);
    expect(await ask()).toEqual(first);
  });
});
