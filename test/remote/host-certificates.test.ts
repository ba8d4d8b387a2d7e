import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  certifiedHost,
  certifyHost,
  type KeyFile,
  makeKeyFile,
} from '../harness/hosts/host-authority.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { fingerprintOf } from '../harness/servers/recording-server.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

interface Host {
  keys: string[];
  fingerprints: string[];
}

describeStack(missingPrograms('sshd', 'ssh'), 'hosts known by an authority', form => {
  const directory = makeTempDir('authorities');
  afterAll(() => directory.remove());
  const [authority, other, hostKey] = [1, 2, 3].map(() => makeKeyFile(directory.path)) as [
    KeyFile,
    KeyFile,
    KeyFile,
  ];
  const sshd = useStarted(() => {
    certifyHost(authority, hostKey, 'localhost');
    return startTestSshd({ lines: certifiedHost(hostKey) });
  });
  const { client } = useStack(form);
  const pin = (key: KeyFile, patterns = 'localhost') => `@cert-authority ${patterns} ${key.public}`;

  const send = (method: string, path: string, body: object) =>
    client.fetch(path, { method, body: JSON.stringify(body) });
  const add = (name: string, keys: string[], more: object = {}) =>
    client.post<Host>('/api/hosts', {
      name,
      address: 'localhost',
      port: sshd.port,
      private: true,
      keys,
      ...more,
    });
  const open = (hostname: string, { username, privateKey }: TestSshd = sshd) =>
    send('POST', '/api/remotes', { hostname, username, privateKey });
  const sidOf = async (answer: Response) => {
    expect(answer.status, await answer.clone().text()).toBe(200);
    return ((await answer.json()) as { sid: string }).sid;
  };
  const run = (sid: string, command: string) =>
    send('POST', '/api/remotes/launch', { sid, command });
  const runsThere = async (hostname: string) => {
    const sid = await sidOf(await open(hostname));
    expect(await (await run(sid, 'echo in')).json()).toMatchObject({ output: 'in\n' });
    return sid;
  };

  beforeAll(async () => {
    await add('certified', [pin(authority)]);
  });

  test('a command runs where the host shows a certificate, without a key of its own being pinned', async () => {
    await runsThere('certified');
    const host = await client.get<Host>('/api/hosts/certified');
    expect(host).toMatchObject({
      keys: [pin(authority)],
      fingerprints: [fingerprintOf(authority.public)],
    });
  });

  test('a renewed host key and certificate need no change; what does not count is told', async () => {
    const renewed = makeKeyFile(directory.path, 'ecdsa');
    certifyHost(authority, renewed, 'localhost');
    const sshds: TestSshd[] = [];
    const put = async (key: KeyFile) => {
      const next = await startTestSshd({ lines: certifiedHost(key) });
      sshds.push(next);
      return next;
    };
    try {
      const first = await put(hostKey);
      await add('renewed', [pin(authority)], { port: first.port });
      await sidOf(await open('renewed', first));
      await first.down();
      certifyHost(authority, renewed, 'localhost', '-V', '20200101000000Z:20210101000000Z');
      const expired = await put(renewed);
      await send('PUT', '/api/hosts/renewed', { port: expired.port });
      const answer = await open('renewed', expired);
      const problem = await expectProblem(answer, 409, 'host_key_changed');
      expect(problem.detail).toContain('its certificate was valid until 2021-01-01T00:00:00.000Z');
      certifyHost(authority, renewed, 'localhost');
      await expired.down();
      await expired.up();
      await sidOf(await open('renewed', expired));
    } finally {
      await Promise.all(sshds.map(one => one.stop()));
    }
  });

  test('another authority ends the sessions, and lets nobody in whom it has not signed', async () => {
    const sid = await runsThere('certified');
    await send('PUT', '/api/hosts/certified', { keys: [pin(other)] });
    await expectProblem(await run(sid, 'true'), 409, 'host_changed');
    const problem = await expectProblem(await open('certified'), 409, 'host_key_changed');
    expect(problem.detail).toContain(
      `pinned is the authority ${fingerprintOf(other.public)}; its certificate is signed by ${fingerprintOf(authority.public)}`,
    );
    expect(problem.hint).toContain('ssh-keygen -s');
    // The patterns belong to the pin.
    await send('PUT', '/api/hosts/certified', { keys: [pin(authority)] });
    const again = await runsThere('certified');
    await send('PUT', '/api/hosts/certified', { keys: [pin(authority, 'local*')] });
    await expectProblem(await run(again, 'true'), 409, 'host_changed');
  });

  test('an authority stays where the keys that the host shows are pinned', async () => {
    await add('both', [pin(authority)]);
    const answer = await send('PUT', '/api/hosts/both', { trust: 'now' });
    const { keys } = (await answer.json()) as Host;
    expect(keys).toEqual(expect.arrayContaining([pin(authority), hostKey.public]));
    await runsThere('both');
  });

  test('a pin that no host could show is an error of its place', async () => {
    const entry = { name: 'bad', address: 'node.example.org' };
    const certificate = certifyHost(authority, hostKey, 'localhost');
    const cases = [
      [`@revoked * ${hostKey.public}`, 'has the marker @revoked: only @cert-authority is known'],
      [`@cert-authority ${authority.public}`, 'must be "@cert-authority HOSTS ssh-ed25519 AAAA…"'],
      [`@cert-authority * ${certificate}`, "the key's type is one of ssh-ed25519"],
      [certificate, 'is a certificate: give the key itself, or the authority'],
      [
        pin(authority, '*.example.com'),
        'is an authority for *.example.com, which node.example.org does not fit',
      ],
      [pin(authority, '*.org,!*.example.org'), 'which node.example.org does not fit'],
    ];
    for (const [line, says] of cases) {
      const answer = await send('POST', '/api/hosts', { ...entry, keys: [hostKey.public, line] });
      const problem = await expectProblem(answer, 400, 'invalid_input');
      expect(problem.detail).toContain(`keys.1: ${says}`.slice(0, 8));
      expect(problem.detail).toContain(says);
    }
    // Nor may the address be moved away from them.
    const moved = await send('PUT', '/api/hosts/both', { address: 'node.example.org' });
    expect((await expectProblem(moved, 400, 'invalid_input')).detail).toContain('keys.0: ');
  });
});
