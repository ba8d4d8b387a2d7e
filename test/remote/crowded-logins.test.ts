import { expect, test } from 'vitest';
import { addHost, openSession } from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

describeUnless(missingPrograms('sshd'), 'a host that takes one login at a time', () => {
  const sshd = useStarted(() => startTestSshd({ lines: ['MaxStartups 1'] }));
  const { client } = useStack({ start: startStack });

  test('lets in all who come at once, in turn', async () => {
    await addHost(client, sshd);
    const sids = await Promise.all(Array.from({ length: 8 }, () => openSession(client, sshd)));
    for (const sid of sids)
      expect(
        await client.post('/api/remotes/launch', { sid, command: 'echo works' }),
      ).toMatchObject({ output: 'works\n' });
    expect(sshd.log()).toMatch(/MaxStartups|drop connection/);
  });
});
