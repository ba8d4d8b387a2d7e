import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { fingerprintOf, startRecordingServer } from '../harness/servers/recording-server.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a host whose key changes while sessions are open', form => {
  const directory = makeTempDir('keys');
  const impostorKey = loadOrCreateKeyPair(join(directory.path, 'impostor_key'));
  afterAll(() => directory.remove());
  const impostor = useStarted(() =>
    startRecordingServer({ hostKey: impostorKey.private, password: 'open sesame' }),
  );
  const { client, sshd, proxy } = useProxiedStack(form);

  test('nothing is sent to who shows another key; what runs there is not run again', async () => {
    const sid = await openSession(client, sshd);
    const go = join(sshd.home, 'go');
    const command = `echo x >>"$HOME/ran"; echo begun; while ! test -e "${go}"; do sleep 0.1; done`;
    const { id } = await launchAsync(client, sid, command);
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });

    // Whoever took the host's place.
    proxy.leadTo(impostor.port);
    proxy.cut();
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

    // It is over: the session goes on.
    proxy.leadTo(sshd.port);
    expect((await launch()).status).toBe(200);
    writeFileSync(go, '');
    expect(readFileSync(join(sshd.home, 'ran'), 'utf8')).toBe('x\n');
  });
});
