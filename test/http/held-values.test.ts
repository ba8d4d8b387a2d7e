import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, test } from 'vitest';
import { makeModel } from '../harness/clients/uploads.ts';
import { addUser } from '../harness/clients/users.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

describeStack(undefined, 'readers of large values that stand still', form => {
  const { stack, client: admin } = useStack(form);
  const database = useStackDatabase(stack);

  test('do not delay small ones of others', async () => {
    const { pid, mid } = await makeModel(admin);
    const large = `/api/models/${mid}/parameters/large`;
    const value = 'x'.repeat((16 << 20) - 100);
    const stored = await admin.fetch(large, { method: 'PUT', body: JSON.stringify({ value }) });
    expect(stored.status).toBe(200);
    // Four users may hold all the memory that there is for values.
    const slow = await Promise.all(Array.from({ length: 4 }, () => addUser(admin)));
    const answers = await Promise.all(
      slow.flatMap(({ username, client }) =>
        [username, username].map(async () => {
          await database`
          insert into project_members (project, username, role) values (${pid}, ${username}, 'reader')
            on conflict do nothing`;
          const headers = { Authorization: client.authorization };
          const asked = request(stack.url + large, { headers }).end();
          const [answer] = (await once(asked, 'response')) as [IncomingMessage];
          return answer;
        }),
      ),
    );
    const small = `/api/models/${mid}/parameters/small`;
    const some = 'x'.repeat(10_000);
    const put = await admin.fetch(small, { method: 'PUT', body: JSON.stringify({ value: some }) });
    expect([put.status, await admin.get(small)]).toEqual([200, some]);
    for (const answer of answers) answer.destroy();
  });
});
