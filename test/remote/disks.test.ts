import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Account, makeAccount } from '../harness/clients/accounts.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import {
  addHost,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const skip = missingRoot() ?? missingPrograms('sshd', 'ffmpeg');

describeStack(skip, 'what is written on a host', form => {
  const { client } = useStack(form);

  async function withAccount(
    work: (on: { account: Account; sshd: TestSshd; hostname: string }) => Promise<void>,
  ): Promise<void> {
    const account = await makeAccount();
    const sshd = await startTestSshd({ account });
    try {
      const hostname = await addHost(client, sshd, { name: `disk-${sshd.port}` });
      await work({ account, sshd, hostname });
    } finally {
      await sshd.stop();
      await account.remove();
    }
  }

  /** The account's files in all places that anyone may write to; its home's begin with `~`. */
  function findFilesOf({ uid, home }: Account): string[] {
    const places = [home, '/tmp', '/var/tmp', '/dev/shm', '/run'].filter(existsSync);
    const found = spawnSync('find', [...places, '-uid', String(uid), '-print0'], {
      encoding: 'utf8',
    });
    const paths = new Set(found.stdout.split('\0').filter(Boolean));
    return [...paths].map(path => path.replace(home, '~')).sort();
  }

  const launch = (sid: string, command: string) =>
    client.post<{ output: string }>('/api/remotes/launch', { sid, command });

  test('a full disk: the run ends as remote_disk_full with its output; with room again all works', () =>
    withAccount(async ({ account, sshd, hostname }) => {
      const { home, uid } = account;
      const options = `size=12m,uid=${uid},gid=${uid},mode=755`;
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', home]);
      try {
        const sid = await openSession(client, sshd, { hostname });
        const { id } = await launchAsync(
          client,
          sid,
          // What was printed before is stored, and so no longer takes room here, long before the disk is full.
          'echo before; sleep 1; head -c 64000000 /dev/zero >"$HOME/filling"; head -c 8000000 /dev/zero; sleep 300',
        );
        expect(await waitForEnd(client, id)).toMatchObject({
          state: 'failed',
          error: { code: 'remote_disk_full', hint: expect.stringContaining('Free some space') },
        });
        expect(String(await readOutput(client, id))).toMatch(/^before\n\0*$/);
        // Neither can anything else be started now, nor, over a new connection, an agent.
        const refused = () =>
          client.fetch('/api/remotes/launch', {
            method: 'POST',
            body: JSON.stringify({ sid, command: 'touch "$HOME/ran"' }),
          });
        await expectProblem(await refused(), 400, 'remote_disk_full');
        const plain = await openSession(client, sshd, { hostname, agent: false });
        expect((await launch(plain, 'echo works')).output).toBe('works\n');
        rmSync(join(home, 'filling'));
        expect((await launch(sid, 'echo again')).output).toBe('again\n');
        expect(existsSync(join(home, 'ran'))).toBe(false);
        await client.delete(`/api/remotes/${sid}`);
        await client.delete(`/api/remotes/${plain}`);
        const noProcess = () => findFilesOf(account).every(path => !path.includes('/serve/'));
        await waitFor(noProcess, { what: 'the agent to end', timeoutMs: 20_000 });
      } finally {
        await sshd.stop();
        execFileSync('umount', ['--lazy', home]);
      }
    }));

  test.each([
    ['than the disk has', 'size=12m', 16_000_000],
    ['than a disk without files has', 'nr_inodes=40', 1],
  ])('a file that needs more %s is remote_disk_full, and nothing of it stays', (_, limit, bytes) =>
    withAccount(async ({ account, sshd, hostname }) => {
      const { home, uid } = account;
      const options = [limit, `uid=${uid}`, `gid=${uid}`, 'mode=755'].join(',');
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', home]);
      try {
        const sid = await openSession(client, sshd, { hostname });
        const put = (name: string, bytes: number, query = '') =>
          client.fetch(`/api/remotes/${sid}/file${home}/${name}${query}`, {
            method: 'PUT',
            headers: { 'Content-Type': 'application/octet-stream' },
            body: Buffer.alloc(bytes, 'x'),
          });
        const kept = () => findFilesOf(account).filter(path => !path.startsWith('~/.windlass/'));
        writeFileSync(join(home, 'old'), 'old');
        chownSync(join(home, 'old'), uid, uid);
        const fill = join(home, 'fill');
        if (bytes === 1) for (let i = 0; i < 40; i++) spawnSync('touch', [`${fill}-${i}`]);
        const before = kept();
        for (const [name, query] of [
          ['new', ''],
          ['old', ''],
          ['in/it', '?parents=true'],
        ] as const) {
          const problem = await expectProblem(
            await put(name, bytes, query),
            400,
            'remote_disk_full',
          );
          expect(problem.hint).toContain('Free some space');
        }
        expect(readFileSync(join(home, 'old'), 'utf8')).toBe('old');
        expect(kept()).toEqual(before);
        if (bytes === 1) rmSync(`${fill}-1`);
        expect((await put('fits', 1_000)).status).toBe(201);
        await expectProblem(await put('x'.repeat(300), 1), 400, 'invalid_input');
        expect(kept()).not.toContainEqual(expect.stringContaining('.windlass-'));
      } finally {
        await sshd.stop();
        execFileSync('umount', ['--lazy', home]);
      }
    }),
  );

  test('where nothing can be written for another reason, it is told in words of the host', () =>
    withAccount(async ({ account, sshd, hostname }) => {
      const sid = await openSession(client, sshd, { hostname, agent: false });
      const folder = join(account.home, 'read-only');
      mkdirSync(folder, { mode: 0o777 });
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=777', 'tmpfs', folder]);
      const old = join(folder, 'old');
      writeFileSync(old, 'old');
      chownSync(old, account.uid, account.uid);
      execFileSync('mount', ['-o', 'remount,ro', folder]);
      const send = (method: string, name: string, headers: Record<string, string> = {}) =>
        client.fetch(`/api/remotes/${sid}/file${folder}/${name}`, {
          method,
          headers: { 'Content-Type': 'application/octet-stream', ...headers },
          body: method === 'PUT' ? 'x' : undefined,
        });
      try {
        for (const answer of [
          await send('PUT', 'new'),
          await send('PUT', 'old'),
          await send('PUT', 'in/new?parents=true'),
          await send('DELETE', 'old'),
          await send('DELETE', 'old', { 'If-Match': '*' }),
        ])
          expect((await expectProblem(answer, 400, 'invalid_input')).detail).toContain(
            'Read-only file system',
          );
      } finally {
        execFileSync('umount', ['--lazy', folder]);
      }
    }));

  test('a home that cannot be written: refused with a hint, and doing what it says works', () =>
    withAccount(async ({ account, sshd, hostname }) => {
      chmodSync(account.home, 0o555);
      const before = findFilesOf(account);
      const open = (agent?: boolean) =>
        client.fetch('/api/remotes', {
          method: 'POST',
          body: JSON.stringify({
            hostname,
            username: sshd.username,
            privateKey: sshd.privateKey,
            ...(agent === undefined ? {} : { agent }),
          }),
        });
      const problem = await expectProblem(await open(), 500, 'agent_startup_failed');
      expect(problem.title).toBe('Agent startup failed.');
      expect(problem.hint).toContain('"agent": false');
      const opened = await open(false);
      expect(opened.status).toBe(200);
      const { sid } = (await opened.json()) as { sid: string };
      expect((await launch(sid, 'echo works')).output).toBe('works\n');
      expect(findFilesOf(account)).toEqual(before);
    }));

  test('a home that becomes read-only, or whose .windlass becomes a file, is no full disk', () =>
    withAccount(async ({ account, sshd, hostname }) => {
      const { home, uid } = account;
      const options = `uid=${uid},gid=${uid},mode=755`;
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', home]);
      try {
        const sid = await openSession(client, sshd, { hostname });
        const refused = async (words: string) => {
          const body = JSON.stringify({ sid, command: 'echo ran' });
          const answer = await client.fetch('/api/remotes/launch', { method: 'POST', body });
          const problem = await expectProblem(answer, 400, 'agent_problem');
          expect(problem.detail).toContain(words);
          expect(problem.hint).toContain('"agent": false');
        };
        const runs = join(home, '.windlass/runs');
        // An agent that is asked to forget a run meanwhile ends, and none can be started until the home is mended.
        const awaitForgotten = () =>
          waitFor(() => readdirSync(runs).every(run => !existsSync(join(runs, run, 'claim'))), {
            what: 'the runs to be forgotten',
            timeoutMs: 30_000,
          });
        expect((await launch(sid, 'echo works')).output).toBe('works\n');
        await awaitForgotten();
        execFileSync('mount', ['-o', 'remount,ro', home]);
        await refused('Read-only file system');
        execFileSync('mount', ['-o', 'remount,rw', home]);
        expect((await launch(sid, 'echo again')).output).toBe('again\n');
        await awaitForgotten();
        const folder = join(home, '.windlass');
        renameSync(folder, `${folder}.away`);
        writeFileSync(folder, '');
        await refused('Not a directory');
        rmSync(folder);
        renameSync(`${folder}.away`, folder);
        expect((await launch(sid, 'echo at last')).output).toBe('at last\n');
      } finally {
        await sshd.stop();
        execFileSync('umount', ['--lazy', home]);
      }
    }));

  test('nothing of ours is left anywhere but the agent, whatever was done and however it ended', () =>
    withAccount(async ({ account, sshd, hostname }) => {
      const images = await drawFrames({ folder: join(account.home, 'frames'), count: 5 });
      const before = findFilesOf(account);
      const sid = await openSession(client, sshd, { hostname });
      await launch(sid, 'seq 300000; exit 3');
      for (const encode of ['host', 'worker']) {
        const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, {
          'content-type': 'video/mp4',
          images,
          encode,
        });
        expect(await waitForEnd(client, vsid)).toMatchObject({ state: 'succeeded', error: null });
      }
      const read = await client.fetch(`/api/remotes/${sid}/file${images[0]}`);
      expect([read.status, (await read.arrayBuffer()).byteLength > 0]).toEqual([200, true]);
      await client.post(`/api/remotes/${sid}/browse${account.home}`, {});
      const cancelled = await launchAsync(client, sid, 'echo begun; sleep 300');
      const followed = await launchAsync(client, sid, 'echo begun; sleep 2; echo ended');
      for (const { id } of [cancelled, followed])
        await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'output' });
      await client.delete(`/api/jobs/${cancelled.id}`);
      sshd.disconnect();
      expect(await waitForEnd(client, followed.id)).toMatchObject({ state: 'succeeded' });
      expect((await waitForEnd(client, cancelled.id)).state).toBe('cancelled');
      await client.delete(`/api/remotes/${sid}`);
      const left = () => findFilesOf(account).filter(path => !before.includes(path));
      await waitFor(() => left().length <= 6, { what: 'the rest to go', timeoutMs: 30_000 }).catch(
        () => {},
      );
      expect(left()).toEqual([
        '~/.windlass',
        expect.stringMatching(/^~\/\.windlass\/agent-[0-9a-f]+\.sh$/),
        '~/.windlass/runs',
        '~/.windlass/serve',
        '~/.windlass/started',
        '~/.windlass/started/.label',
      ]);
    }));
});
