import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeTable } from '../harness/clients/tables.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  someBytes,
} from '../harness/clients/uploads.ts';
import { API, numbers, statusOf, useOtherAccounts } from '../harness/hosts/other-accounts.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { waitFor } from '../harness/wait-for.ts';

const API_USER = numbers(API);

describeUnless(
  missingRoot() ?? missingPrograms('sshd'),
  'where root starts it, with API_USER',
  () => {
    const { stack, sshd, client, made, pidsOf, uidsOf, objects, rowsOf } = useOtherAccounts({
      API_USER,
    });
    /** The exit status of a command that the API's user gives. */
    const asApi = (...command: string[]) =>
      spawnSync(command[0] ?? '', command.slice(1), { ...API, cwd: '/', stdio: 'ignore' }).status;

    test('API, workers and database are processes of different users', () => {
      const users = ['windlass-api', 'windlass-worker', 'postgres'].map(name => {
        const uids = uidsOf(name);
        expect({ name, uids: uids.length }).toEqual({ name, uids: 1 });
        return uids[0];
      });
      expect(new Set(users).size).toBe(3);
      expect(users[0]).toBe(API.uid);
      const [api = 0] = pidsOf('windlass-api');
      const status = statusOf(api);
      expect(status).toMatch(/^Groups:\s*$/m);
      expect(status).toMatch(/^CapEff:\s+0+$/m);
    });

    test("the API's user reads neither keys nor environment nor memory of the others", () => {
      const [worker = 0] = pidsOf('windlass-worker');
      const [postgres = 0] = pidsOf('postgres');
      const [api = 0] = pidsOf('windlass-api');
      expect(asApi('cat', `/proc/${api}/environ`)).toBe(0);
      for (const pid of [worker, postgres, stack.pid]) {
        expect(asApi('cat', `/proc/${pid}/environ`)).not.toBe(0);
        expect(asApi('head', '-c', '1', `/proc/${pid}/mem`)).not.toBe(0);
        expect(asApi('ls', `/proc/${pid}/fd`)).not.toBe(0);
        expect(asApi('kill', '-0', String(pid))).not.toBe(0);
      }
      expect(asApi('test', '-x', stack.dataDir)).toBe(0);
      for (const name of ['secrets.json', 'postgres.password', 'postgres.log', 'postgres'])
        expect([name, asApi('test', '-r', join(stack.dataDir, name))]).toEqual([name, 1]);
      expect(asApi('touch', join(stack.dataDir, 'secrets.json'))).not.toBe(0);
      expect(asApi('mv', join(stack.dataDir, 'secrets.json'), '/tmp')).not.toBe(0);
    });

    test('both use what is stored, old and new, and nobody else does', async () => {
      expect(await rowsOf(made.table, '')).toHaveLength(2);
      // The worker writes what the API reads, and the other way round.
      expect(await rowsOf(made.table)).toEqual([
        [1, 'y'],
        [2, 'x'],
      ]);
      const uid = await beginUpload(client(), made.mid, ['file']);
      const bytes = someBytes(100_000);
      expect((await putPart(client(), partPath(uid, 0, 0), bytes)).status).toBe(200);
      const another = await makeTable(client(), { mid: made.mid, aid: 'more', csv: 'a\n1\n' });
      expect((await client().fetch(`${another}/data`)).status).toBe(200);
      const { id } = await launchAsync(client(), made.sid, 'head -c 9000000 /dev/zero');
      expect(await waitForEnd(client(), id)).toMatchObject({ state: 'succeeded' });
      expect((await readOutput(client(), id)).length).toBe(9_000_000);
      const found = objects();
      expect(new Set(found.map(({ uid }) => uid))).toEqual(new Set([0, API.uid]));
      for (const { gid, mode } of found) expect([gid, mode & 0o777]).toEqual([API.gid, 0o640]);
      const stranger = { uid: 61_236, gid: 61_236 };
      const entered = spawnSync('ls', [join(stack.dataDir, 'objects')], { ...stranger, cwd: '/' });
      expect(entered.status).not.toBe(0);

      // Each removes what the other has made: a refused part, and what upkeep collects.
      await client().delete(`/api/uploads/${uid}`);
      await client().delete(`/api/jobs/${id}/record`);
      await client().delete(`/api/models/${made.mid}`);
      // But for the id of the installation.
      await waitFor(() => objects().length === 1, {
        what: 'the objects to go',
        timeoutMs: 60_000,
      });
    });

    test('goes on as root without it, and says what is wrong with it', async () => {
      const { mid } = await makeModel(client());
      const uid = await beginUpload(client(), mid, ['file']);
      expect((await putPart(client(), partPath(uid, 0, 0), someBytes(10))).status).toBe(200);
      await stack.down();
      const wrong = async (user: string, settings: Record<string, string> = {}) => {
        const { ended } = startProgram({
          args: ['dist/cli/main.js', 'up'],
          cwd: '/',
          settings: { DATA_DIR: stack.dataDir, PORT: '0', API_USER: user, ...settings },
        });
        const { code, stderr } = await ended;
        expect(code).toBe(1);
        return stderr.trimEnd().split('\n').at(-1);
      };
      const { PORT = '' } = stack.environment;
      expect(await wrong('nobody-of-this-name', { PORT })).toContain(
        'is no account of this machine',
      );
      expect(await wrong('0:0', { PORT })).toContain('other than root');
      expect(await wrong('postgres', { PORT })).toContain('run as postgres, too.');
      expect(await wrong(API_USER, { PORT: '81' })).toContain('may not listen on port 81.');
      stack.environment.API_USER = 'root';
      await stack.up();
      expect((await putPart(client(), partPath(uid, 0, 1), someBytes(10))).status).toBe(200);
      made.sid = await openSession(client(), sshd);
    });
  },
);
