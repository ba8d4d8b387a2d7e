import { expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  someBytes,
} from '../harness/clients/uploads.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

describeStack(missingPrograms('sshd'), 'a write of what is there, with If-None-Match', form => {
  const { client, sshd } = useRemoteStack(form);

  test('nothing is changed', async () => {
    const { mid, pid } = await makeModel(client);
    await client.post('/api/users', { username: 'there', password: 'long enough' });
    const { items } = await client.get<{ items: { id: string }[] }>('/api/workers');
    const writes: [string, unknown][] = [
      ['/api/users/there', { administrator: true }],
      ['/api/hosts/host', { port: sshd.port }],
      [`/api/projects/${pid}`, { description: 'new' }],
      [`/api/models/${mid}`, { description: 'new' }],
      [`/api/workers/${items[0]?.id}`, { draining: false }],
    ];
    for (const [path, fields] of writes) {
      const found = await client.fetch(path);
      await found.text();
      const tag = found.headers.get('ETag');
      const put = (names: string) =>
        client.fetch(path, {
          method: 'PUT',
          headers: { 'If-None-Match': names },
          body: JSON.stringify(fields),
        });
      for (const names of tag ? ['*', `"x", W/${tag}`] : ['*'])
        await expectProblem(await put(names), 412, 'precondition_failed');
      expect([path, (await put('"x"')).status]).toEqual([path, 200]);
    }
  });

  test('a part is not replaced', async () => {
    const { mid } = await makeModel(client);
    const path = partPath(await beginUpload(client, mid, ['a']), 0, 0);
    const put = (names: string) => putPart(client, path, someBytes(10), { 'If-None-Match': names });
    const made = await put('*');
    expect(made.status).toBe(200);
    for (const names of ['*', made.headers.get('ETag') ?? ''])
      await expectProblem(await put(names), 412, 'precondition_failed');
    expect((await put('"x"')).status).toBe(200);
  });
});
