import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../demo/client.ts';
import { keepKey } from '../demo/ssh-host.ts';
import { describeForms } from './harness/forms.ts';
import { expectProblem } from './harness/problem.ts';
import { type RecordingServer, startRecordingServer } from './harness/recording-server.ts';
import { connectClient } from './harness/remote.ts';
import type { Stack } from './harness/stack.ts';
import { startTcpProxy, type TcpProxy } from './harness/tcp-proxy.ts';
import { makeTempDir } from './harness/temp-dir.ts';

describeForms(undefined, 'a login that is refused later', form => {
  const directory = makeTempDir('refused');
  const login = { hostKey: '', password: 'the first' };
  let stack: Stack;
  let client: Client;
  let server: RecordingServer;
  let proxy: TcpProxy;

  beforeAll(async () => {
    const key = keepKey(join(directory.path, 'server_key'));
    login.hostKey = key.private;
    [stack, server] = await Promise.all([form.start(), startRecordingServer(login)]);
    proxy = await startTcpProxy({ host: '127.0.0.1', port: server.port });
    client = connectClient(stack);
    await client.post('/api/hosts', {
      name: 'host',
      address: '127.0.0.1',
      port: proxy.port,
      keys: [key.public],
      agent: false,
      private: true,
    });
  });
  afterAll(async () => {
    await stack?.stop();
    await proxy?.stop();
    await server?.stop();
    directory.remove();
  });

  const open = (password: string) =>
    client.fetch('/api/remotes', {
      method: 'POST',
      body: JSON.stringify({ hostname: 'host', username: 'someone', password }),
    });
  const launch = (sid: string) =>
    client.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({ sid, command: 'true' }),
    });
  const refusals = () => server.attempts.filter(({ method }) => method === 'password').length;

  test('fails what the session was asked for, is not repeated, and a new session begins anew', async () => {
    const { sid } = (await (await open('the first')).json()) as { sid: string };
    expect((await launch(sid)).status).toBe(200);
    login.password = 'the second';
    proxy.cut();
    const before = refusals();
    for (const answer of await Promise.all(Array.from({ length: 8 }, () => launch(sid))))
      await expectProblem(answer, 403, 'remote_authentication_failed');
    // Each worker may have set out before the other was refused.
    const tried = refusals() - before;
    expect(tried).toBeGreaterThan(0);
    expect(tried).toBeLessThanOrEqual(2);
    const { connections } = server;
    for (const answer of await Promise.all(Array.from({ length: 8 }, () => launch(sid)))) {
      const problem = await expectProblem(answer, 403, 'remote_authentication_failed');
      expect(problem.detail).toContain('is not tried again before');
    }
    // A worker that comes anew knows it too.
    stack.kill('windlass-worker');
    await expectProblem(await launch(sid), 403, 'remote_authentication_failed');
    expect([server.connections, refusals() - before]).toEqual([connections, tried]);

    const again = await open('the second');
    expect(again.status).toBe(200);
    expect((await launch(((await again.json()) as { sid: string }).sid)).status).toBe(200);
  });
});
