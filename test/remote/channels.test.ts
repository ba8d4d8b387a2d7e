import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drawFrames } from '../harness/files/draw-frames.ts';
import {
  addHost,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd', 'ffmpeg'), 'hosts that open few channels', form => {
  const { client } = useStack(form);

  for (const most of [2, 1]) {
    describe(`MaxSessions ${most}`, () => {
      let sshd: TestSshd;
      const hostname = `few-${most}`;
      beforeAll(async () => {
        sshd = await startTestSshd({ lines: [`MaxSessions ${most}`] });
        await addHost(client, sshd, { name: hostname });
      });
      afterAll(() => sshd?.stop());

      for (const agent of [true, false]) {
        test(`twelve commands at once ${agent ? 'with' : 'without'} an agent`, async () => {
          const sid = await openSession(client, sshd, { hostname, agent });
          const ledger = `ledger-${sid}`;
          const ids: string[] = [];
          for (let n = 0; n < 12; n++) {
            const command = `echo ${n} >>"$HOME/${ledger}"; printf 'a%s\\n' ${n}; sleep 0.3; echo b >&2`;
            ids.push((await launchAsync(client, sid, command)).id);
          }
          for (const [n, id] of ids.entries()) {
            expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded', error: null });
            expect(String(await readOutput(client, id))).toBe(`a${n}\n`);
            expect(String(await readOutput(client, id, 'stderr'))).toBe('b\n');
          }
          const ran = readFileSync(join(sshd.home, ledger), 'utf8').trim().split('\n').map(Number);
          expect(ran.toSorted((a, b) => a - b)).toEqual(ids.map((_, n) => n));
          await client.delete(`/api/remotes/${sid}`);
        });
      }

      test('a command is cancelled while others take what channels there are', async () => {
        const sid = await openSession(client, sshd, { hostname });
        const waiting = 'echo begun; while ! test -e "$HOME/go"; do sleep 0.1; done';
        const others = await Promise.all([1, 2, 3].map(() => launchAsync(client, sid, waiting)));
        const { id } = await launchAsync(client, sid, 'echo begun; sleep 300');
        for (const job of [...others, { id }])
          await waitFor(async () => (await readOutput(client, job.id)).length > 0, {
            what: 'each to begin',
            timeoutMs: 20_000,
          });
        await client.delete(`/api/jobs/${id}`);
        expect(await waitForEnd(client, id, 10_000)).toMatchObject({ state: 'cancelled' });
        writeFileSync(join(sshd.home, 'go'), '');
        for (const job of others)
          expect(await waitForEnd(client, job.id)).toMatchObject({ state: 'succeeded' });
        await client.delete(`/api/remotes/${sid}`);
      });
    });
  }

  test('MaxSessions 2: files, folders and videos beside a command that goes on', async () => {
    const sshd = await startTestSshd({ lines: ['MaxSessions 2'] });
    try {
      const hostname = await addHost(client, sshd, { name: `beside-${sshd.port}` });
      const sid = await openSession(client, sshd, { hostname });
      const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 5 });
      const waiting = 'echo begun; while ! test -e "$HOME/go"; do sleep 0.1; done; echo ended';
      const { id } = await launchAsync(client, sid, waiting);
      const first = readFileSync(images[0] ?? '');
      const read = async () => {
        const file = await client.fetch(`/api/remotes/${sid}/file${images[0]}`);
        expect([file.status, Buffer.from(await file.arrayBuffer()).equals(first)]).toEqual([
          200,
          true,
        ]);
      };
      const list = async () => {
        const listing = await client.post<{ names: string[] }>(
          `/api/remotes/${sid}/browse${join(sshd.home, 'frames')}`,
          {},
        );
        expect(listing.names).toHaveLength(5);
      };
      const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, {
        'content-type': 'video/mp4',
        images,
      });
      await Promise.all([read(), list(), read(), list(), read()]);
      expect(await waitForEnd(client, vsid)).toMatchObject({ state: 'succeeded', error: null });
      writeFileSync(join(sshd.home, 'go'), '');
      expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
      expect(String(await readOutput(client, id))).toBe('begun\nended\n');
    } finally {
      await sshd.stop();
    }
  });
});
