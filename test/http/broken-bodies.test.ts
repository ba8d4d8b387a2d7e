import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { makeModel } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

describeStack(undefined, 'clients that leave while they send', form => {
  const { stack, client } = useStack(form);

  /** Sends the head and the beginning of a body, and breaks off once the service has it. */
  async function breakOff(
    [method, path]: [string, string],
    { length, sent }: { length: number; sent: string },
  ): Promise<void> {
    const { hostname, port } = new URL(stack.url);
    const socket = connect(Number(port), hostname);
    const fields = [
      `Host: ${hostname}`,
      `Authorization: ${client.authorization}`,
      'Content-Type: application/json',
      `Content-Length: ${length}`,
      'Expect: 100-continue',
    ];
    const asked = new Promise((resolve, reject) => {
      socket.once('data', resolve).once('error', reject);
    });
    socket.write(`${method} ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
    // 100 (Continue) is sent when somebody reads.
    expect(String(await asked)).toMatch(/^HTTP\/1\.1 100 /);
    await new Promise(resolve => socket.write(sent, resolve));
    socket.destroy();
  }

  test('of a JSON body that breaks off nothing is kept', async () => {
    const { pid, mid } = await makeModel(client);
    const whole = JSON.stringify({ name: 'half', 'model-type': 'x', description: 'x' });
    const cases: [[string, string], string][] = [
      [['POST', '/api/projects'], '{"name":"half"}'],
      [['PUT', `/api/projects/${pid}`], '{"name":"half"}'],
      [['POST', `/api/projects/${pid}/models`], whole],
      [['PUT', `/api/models/${mid}/parameters/half`], '{"value":1}'],
    ];
    for (const [request, body] of cases)
      await breakOff(request, { length: body.length + 1, sent: body });
    const projects = await client.get<{ items: { name: string }[] }>('/api/projects');
    const models = await client.get<{ items: { name: string }[] }>(`/api/projects/${pid}/models`);
    expect([...projects.items, ...models.items].filter(({ name }) => name === 'half')).toEqual([]);
    expect((await client.fetch(`/api/models/${mid}/parameters/half`)).status).toBe(404);
  });

  test('big values that break off give back the room that they were to take', async () => {
    const { mid } = await makeModel(client);
    const path = `/api/models/${mid}/parameters/big`;
    const length = 16 << 20;
    // Two of this size are all that one user may have on their way.
    for (let round = 0; round < 4; round++)
      await Promise.all(
        [1, 2].map(() =>
          breakOff(['PUT', path], { length, sent: `{"value":"${'x'.repeat(1 << 20)}` }),
        ),
      );
    expect((await client.fetch(path)).status).toBe(404);
    const value = 'x'.repeat(length - 100);
    const stored = await client.fetch(path, { method: 'PUT', body: JSON.stringify({ value }) });
    expect(stored.status).toBe(200);
  });
});
