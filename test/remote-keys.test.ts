import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../demo/client.ts';
import { keepKey } from '../demo/keep-key.ts';
import { describeForms } from './harness/forms.ts';
import { expectProblem } from './harness/problem.ts';
import {
  fingerprintOf,
  type RecordingServer,
  startRecordingServer,
} from './harness/recording-server.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from './harness/remote.ts';
import { missingPrograms } from './harness/skip.ts';
import { startTestSshd, type TestSshd } from './harness/sshd.ts';
import type { Stack } from './harness/stack.ts';
import { startTcpProxy, type TcpProxy } from './harness/tcp-proxy.ts';
import { makeTempDir } from './harness/temp-dir.ts';
import { waitFor } from './harness/wait-for.ts';

describeForms(missingPrograms('sshd'), 'a host whose key changes while sessions are open', form => {
  const directory = makeTempDir('keys');
  const impostorKey = keepKey(join(directory.path, 'impostor_key'));
  let stack: Stack;
  let client: Client;
  let sshd: TestSshd;
  let impostor: RecordingServer;
  let proxies: TcpProxy[];
  /** The host's entry leads here, and from here to sshd or to whoever takes its place. */
  let gate: TcpProxy;

  beforeAll(async () => {
    [stack, sshd, impostor] = await Promise.all([
      form.start(),
      startTestSshd(),
      startRecordingServer({ hostKey: impostorKey.private, password: 'open sesame' }),
    ]);
    client = connectClient(stack);
    const target = { host: '127.0.0.1', port: sshd.port };
    gate = await startTcpProxy(target);
    proxies = [gate];
  });
  afterAll(async () => {
    await stack?.stop();
    for (const proxy of proxies ?? []) await proxy.stop();
    await sshd?.stop();
    await impostor?.stop();
    directory.remove();
  });

  test('nothing is sent to who shows another key; what runs there is not run again', async () => {
    await addHost(client, sshd, { port: gate.port });
    const sid = await openSession(client, sshd);
    const go = join(sshd.home, 'go');
    const command = `echo x >>"$HOME/ran"; echo begun; while ! test -e "${go}"; do sleep 0.1; done`;
    const { id } = await launchAsync(client, sid, command);
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });

    // Whoever took the host's place.
    await client.fetch('/api/hosts/host', {
      method: 'PUT',
      body: JSON.stringify({ port: impostor.port }),
    });
    gate.cut();
    const job = await waitForEnd(client, id, 30_000);
    expect(job).toMatchObject({ state: 'failed', error: { code: 'outcome_unknown' } });
    for (const line of [sshd.hostKey, impostorKey.public])
      expect(job.error?.detail).toContain(fingerprintOf(line));
    const launch = () =>
      client.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, command: 'true' }),
      });
    const problem = await expectProblem(await launch(), 409, 'host_key_changed');
    for (const line of [sshd.hostKey, impostorKey.public])
      expect(problem.detail).toContain(fingerprintOf(line));
    expect(impostor.connections).toBeGreaterThan(0);
    expect(impostor.attempts).toEqual([]);

    // It was a mistake, and is put right: the session goes on.
    await client.fetch('/api/hosts/host', {
      method: 'PUT',
      body: JSON.stringify({ port: gate.port }),
    });
    expect((await launch()).status).toBe(200);
    writeFileSync(go, '');
    expect(readFileSync(join(sshd.home, 'ran'), 'utf8')).toBe('x\n');
  });
});
