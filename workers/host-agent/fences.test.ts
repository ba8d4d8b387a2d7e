import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import {
  collect,
  filesOf,
  follow,
  runDirectory,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import {
  mountSmallDisk,
  NEEDS_MOUNT,
  unmountSmallDisk,
} from '../../test/harness/hosts/small-disk.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const MiB = 1024 * 1024;
const harness = useAgentHarness();
const directory = makeTempDir('fences');
afterAll(() => directory.remove());

const LOST = { code: 'remote_connection_failed' };

const startedOf = (host: LocalExec) => join(host.account.home, '.windlass/started');
const namesOf = (host: LocalExec) => harness.connect(host).then(({ hello }) => hello.fences);

/** A host whose directories of fences all have the same inode and no creation time. */
function makeHostOfOneInode(shell: string): LocalExec {
  const bin = mkdtempSync(join(directory.path, 'bin-'));
  writeFileSync(join(bin, 'stat'), '#!/bin/sh\necho 17.W\n');
  chmodSync(join(bin, 'stat'), 0o755);
  return harness.makeHost(shell, {
    PATH: `${bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
  });
}

describe.each(SHELLS)('the directory of fences, under %s', shell => {
  test('is distinguished from a later one with the same inode', async () => {
    const host = makeHostOfOneInode(shell);
    const first = await namesOf(host);
    expect(await namesOf(host)).toBe(first);
    await harness.close();
    rmSync(join(host.account.home, '.windlass'), { recursive: true });
    const second = await namesOf(host);
    expect(second).not.toBe(first);
    expect([first, second].map(name => name.slice(0, 5))).toEqual(['17.W.', '17.W.']);
  });

  test('has one identity for all serves that start at once', async () => {
    const host = makeHostOfOneInode(shell);
    // Installs the agent's file.
    await namesOf(host);
    for (let round = 0; round < 3; round++) {
      await harness.close();
      rmSync(startedOf(host), { recursive: true });
      const names = await Promise.all([1, 2, 3, 4].map(() => namesOf(host)));
      expect(new Set(names).size).toBe(1);
    }
  });

  test('gets a new label if its label is incomplete, and a unique identity until then', async () => {
    const host = makeHostOfOneInode(shell);
    const names = [await namesOf(host)];
    for (const label of ['', readFileSync(join(startedOf(host), '.label'), 'utf8').trim()]) {
      writeFileSync(join(startedOf(host), '.label'), label);
      names.push(await namesOf(host), await namesOf(host));
      expect(await namesOf(host)).toBe(names.at(-1));
    }
    expect(new Set(names).size).toBe(names.length);
  });

  test('has an identity for each connection on a full disk', async context => {
    const host = makeHostOfOneInode(shell);
    if (!mountSmallDisk(host)) return context.skip(NEEDS_MOUNT);
    try {
      await harness.connect(host);
      await harness.close();
      rmSync(startedOf(host), { recursive: true });
      mkdirSync(startedOf(host));
      const filling = join(host.account.home, 'filling');
      expect(() => writeFileSync(filling, Buffer.alloc(16 * MiB))).toThrow('ENOSPC');
      const names = [await namesOf(host), await namesOf(host)];
      expect(existsSync(join(startedOf(host), '.label'))).toBe(false);
      rmSync(filling);
      names.push(await namesOf(host));
      expect(new Set(names).size).toBe(3);
      expect(await namesOf(host)).toBe(names[2]);
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });

  test('is unreadable for a while: connections are lost, and runs go on', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const other = await harness.connect(host);
    const id = harness.newName();
    const command = 'while ! test -e go; do sleep 0.02; done; exit 7';
    const events = client.run({ id, token: 'one', command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    renameSync(startedOf(host), `${startedOf(host)}-away`);
    await expect(events.next()).rejects.toMatchObject(LOST);
    await expect(follow(other, id)).rejects.toMatchObject(LOST);
    await Promise.all([client.closed, other.closed]);
    renameSync(`${startedOf(host)}-away`, startedOf(host));
    const next = await harness.connect(host);
    const rest = next.follow({ id, stdout: 0, stderr: 0 });
    expect(await rest.next()).toMatchObject({ value: { type: 'running' } });
    writeFileSync(join(host.account.home, 'go'), '');
    expect((await collect({ client: next, id, events: rest })).last).toMatchObject({ code: 7 });
  });

  test('is recreated during a connection, which then answers no question about missing fences', async () => {
    const host = harness.makeHost(shell);
    const asked = ['follow', 'stop', 'forget', 'list'] as const;
    for (const what of asked) {
      const client = await harness.connect(host);
      renameSync(startedOf(host), `${startedOf(host)}-${what}`);
      const { hello } = await harness.connect(host);
      expect(hello.fences).not.toBe(client.hello.fences);
      const ask = {
        follow: () => follow(client, 'unknown'),
        stop: () => client.stop('unknown'),
        forget: () => client.forget('unknown'),
        list: () => client.list().next(),
      };
      await expect(ask[what]()).rejects.toMatchObject(LOST);
    }
    expect(filesOf(host)).not.toContain('started/unknown');
  });

  test('has lost the fence of a running run: it is reported as lost, not as never started', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    const events = client.run({ id, token: 'one', command: 'sleep 300' });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const run = runDirectory(host, id);
    const fence = readFileSync(join(startedOf(host), id));
    rmSync(join(startedOf(host), id));
    expect(await events.next()).toEqual({ value: { type: 'lost' }, done: false });
    writeFileSync(join(startedOf(host), id), fence);
    expect(await client.stop(id)).toEqual({ result: 'killed' });
    await waitFor(() => existsSync(join(run, 'end.143.0.0')), { what: 'its end' });
  });
});
