import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findDecoderUser, findPostgresUser } from '../../shared/process/system-users.ts';
import { makeTable, startParse, utf8 } from '../harness/clients/tables.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  someBytes,
} from '../harness/clients/uploads.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  API,
  numbers,
  statusOf,
  uidOf,
  useOtherAccounts,
  WORKER,
} from '../harness/hosts/other-accounts.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeUnless, missingPrograms, missingRoot } from '../harness/skip.ts';
import { type StackProcess, startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** Why root may make no user namespace here, as in most containers. */
function missingNamespaces() {
  if (spawnSync('unshare', ['--user', '--keep-caps', 'true']).status === 0) return undefined;
  return { reason: 'needs root that may make a user namespace', obtainable: false };
}

describeUnless(
  missingRoot() ?? missingPrograms('sshd', 'ffmpeg') ?? missingNamespaces(),
  'workers of an account of their own',
  () => {
    const accounts = { API_USER: numbers(API), WORKER_USER: numbers(WORKER) };
    const { stack, sshd, client, made, pidsOf, uidsOf, objects, rowsOf, ...others } =
      useOtherAccounts(accounts);
    const restart = (given: Record<string, string | undefined>) =>
      others.restart({ PATH: process.env.PATH ?? '', ...given });
    const place = makeTempDir('workers-apart');
    afterAll(() => place.remove());
    const workers = () => pidsOf('windlass-worker');
    /** The user of a process of this kind, while it runs. */
    const seeUser = (what: string, isIt: (entry: StackProcess) => boolean) =>
      waitFor(
        () => {
          try {
            const found = stack.pids().find(isIt);
            return found && { uid: uidOf(found.pid), status: statusOf(found.pid) };
          } catch {
            // It has ended meanwhile.
            return undefined;
          }
        },
        { what: `${what} to run`, intervalMs: 10 },
      );

    test('API, workers, database and decoders are different users, none of them root', async () => {
      expect(stack.log()).not.toContain('run as root');
      expect(workers()).toHaveLength(2);
      const database = findPostgresUser()?.uid;
      const decoder = findDecoderUser()?.uid;
      expect(uidsOf('windlass-api')).toEqual([API.uid]);
      expect(uidsOf('windlass-worker')).toEqual([WORKER.uid]);
      expect(uidsOf('postgres')).toEqual([database]);
      expect(new Set([API.uid, WORKER.uid, database, decoder, 0]).size).toBe(5);

      const csv = `a,b\n${'1234567.5,text of a cell\n'.repeat(1_500_000)}`;
      const { job } = await startParse(client(), {
        mid: made.mid,
        parser: 'csv',
        files: { large: [utf8(csv)] },
      });
      const isParser = ({ name, command }: StackProcess) =>
        name === 'node' && command.includes('parsers/child');
      const parser = await seeUser('the parser', isParser);
      expect(await waitForEnd(client(), job, 80_000)).toMatchObject({ state: 'succeeded' });

      const folder = join(sshd.home, 'frames');
      await drawFrames({ folder, count: 60, width: 1280, height: 720 });
      const { vsid } = await client().post<{ vsid: string }>(`/api/remotes/${made.sid}/videos`, {
        'content-type': 'video/webm',
        pattern: join(folder, 'frame %d.dat'),
        fps: 25,
        encode: 'worker',
      });
      const isFfmpeg = ({ name, command }: StackProcess) =>
        name === 'ffmpeg' && command.includes('pipe:0');
      const ffmpeg = await seeUser('ffmpeg', isFfmpeg);
      expect(await waitForEnd(client(), vsid, 80_000)).toMatchObject({ state: 'succeeded' });
      const video = await client().fetch(`/api/remotes/${made.sid}/videos/${vsid}`);
      expect((await video.arrayBuffer()).byteLength).toBeGreaterThan(10_000);
      for (const { uid, status } of [parser, ffmpeg]) {
        expect(uid).toBe(decoder);
        expect(status).toMatch(/^CapPrm:\s+0+$/m);
        expect(status).toMatch(/^Groups:\s*$/m);
      }
      const scratch = new RegExp(`^windlass-(parse|video)-(${workers().join('|')})-`);
      expect(readdirSync(tmpdir()).filter(name => scratch.test(name))).toEqual([]);
    });

    test('who has all rights that there are in the namespace of a worker is not root', () => {
      const [worker = 0] = workers();
      const [api = 0] = pidsOf('windlass-api');
      const [postgres = 0] = pidsOf('postgres');
      const inWorker = (...command: string[]) =>
        spawnSync('nsenter', [
          ...['--user', `--target=${worker}`, '--setuid=0', '--setgid=0', '--'],
          ...command,
        ]);
      expect(String(inWorker('id', '-u').stdout)).toBe('0\n');
      const secret = join(place.path, 'secret');
      writeFileSync(secret, 'secret', { mode: 0o600 });
      const open = join(place.path, 'open');
      writeFileSync(open, 'open');
      chmodSync(open, 0o644);
      expect(inWorker('cat', open).status).toBe(0);
      expect(inWorker('cat', secret).status).not.toBe(0);
      expect(inWorker('chmod', '666', open).status).not.toBe(0);
      expect(inWorker('chown', '0:0', secret).status).not.toBe(0);
      for (const name of ['secrets.json', 'postgres.password', 'postgres/PG_VERSION'])
        expect([name, inWorker('cat', join(stack.dataDir, name)).status]).toEqual([name, 1]);
      expect(inWorker('touch', join(stack.dataDir, 'lock/x')).status).not.toBe(0);
      for (const pid of [stack.pid, api, postgres]) {
        expect(inWorker('cat', `/proc/${pid}/environ`).status).not.toBe(0);
        expect(inWorker('head', '-c', '1', `/proc/${pid}/mem`).status).not.toBe(0);
        expect(inWorker('kill', '-0', `${pid}`).status).not.toBe(0);
      }
      for (const uid of [API.uid, findPostgresUser()?.uid, 1_000])
        expect(inWorker('setpriv', `--reuid=${uid}`, 'true').status).not.toBe(0);
      for (const kind of ['--user', '--mount', '--pid', '--uts'])
        expect([kind, inWorker('unshare', kind, 'true').status]).toEqual([kind, 1]);
      expect(inWorker('mount', '-t', 'tmpfs', 'tmpfs', '/mnt').status).not.toBe(0);

      const status = statusOf(worker);
      expect(status).toMatch(new RegExp(`^Groups:\\s*${API.gid}\\s*$`, 'm'));
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      const bounding = /^CapBnd:\s+(\w+)$/m.exec(status)?.[1];
      for (const set of ['CapPrm', 'CapEff'])
        expect(status).toMatch(new RegExp(`^${set}:\\s+${bounding}$`, 'm'));
      expect(status).toMatch(/^CapAmb:\s+0+$/m);
    });

    test('a command, what was stored before, and a backup', async () => {
      const { id } = await launchAsync(client(), made.sid, 'head -c 9000000 /dev/zero');
      expect(await waitForEnd(client(), id)).toMatchObject({ state: 'succeeded' });
      expect((await readOutput(client(), id)).length).toBe(9_000_000);
      const sorted = [
        [1, 'y'],
        [2, 'x'],
      ];
      expect(await rowsOf(made.table)).toEqual(sorted);
      const uid = await beginUpload(client(), made.mid, ['open']);
      expect((await putPart(client(), partPath(uid, 0, 0), someBytes(10))).status).toBe(200);
      const found = objects();
      expect(new Set(found.map(({ uid }) => uid))).toEqual(new Set([0, API.uid, WORKER.uid]));
      for (const { gid, mode } of found) expect([gid, mode & 0o777]).toEqual([API.gid, 0o640]);
      const { ended } = startProgram({
        args: ['dist/cli/main.js', 'backup', join(place.path, 'backup')],
        cwd: place.path,
        settings: { DATA_DIR: stack.dataDir },
      });
      expect(await ended).toMatchObject({ code: 0, stderr: '' });
      await client().delete(`/api/uploads/${uid}`);
    });

    test('workers that are killed come back as that user, and what they did ends once', async () => {
      const { id } = await launchAsync(client(), made.sid, 'sleep 2; echo done | tee -a once');
      const before = stack.kill('windlass-worker');
      await waitFor(() => workers().length === 2 && !workers().some(pid => before.includes(pid)), {
        what: 'other workers to run',
      });
      expect(await waitForEnd(client(), id, 60_000)).toMatchObject({ state: 'succeeded' });
      expect(uidsOf('windlass-worker')).toEqual([WORKER.uid]);
      expect(readFileSync(join(sshd.home, 'once'), 'utf8')).toBe('done\n');
      stack.kill('supervisor');
      await waitFor(() => workers().length === 0, { what: 'the workers to end with it' });
      await stack.up();
      expect(uidsOf('windlass-worker')).toEqual([WORKER.uid]);
    });

    test('goes on where the API is root, and where all are, and removes all of it', async () => {
      await restart({ WORKER_USER: numbers(WORKER) });
      expect([uidsOf('windlass-api'), uidsOf('windlass-worker')]).toEqual([[0], [WORKER.uid]]);
      const more = await makeTable(client(), { mid: made.mid, aid: 'more', csv: 'a\n2\n1\n' });
      expect(await rowsOf(more)).toEqual([[1], [2]]);
      expect(await rowsOf(made.table)).toHaveLength(2);
      for (const { gid, mode } of objects())
        expect([gid, mode & 0o777]).toEqual([WORKER.gid, 0o640]);

      // As in a container.
      const programs = join(place.path, 'programs');
      mkdirSync(programs);
      writeFileSync(join(programs, 'unshare'), '#!/bin/sh\necho not permitted >&2\nexit 1\n', {
        mode: 0o755,
      });
      const PATH = `${programs}:${process.env.PATH}`;
      await restart({ WORKER_USER: numbers(WORKER), PATH });
      expect(stack.log()).toContain(
        `The workers run as root, not as ${numbers(WORKER)}: not permitted\n`,
      );
      expect(uidsOf('windlass-worker')).toEqual([0]);
      expect(await rowsOf(more)).toEqual([[1], [2]]);
      const last = await makeTable(client(), { mid: made.mid, aid: 'last', csv: 'a\n2\n1\n' });
      expect(await rowsOf(last)).toEqual([[1], [2]]);

      await restart(accounts);
      expect(await rowsOf(last)).toEqual([[1], [2]]);
      const jobs = await client().get<{ items: { id: string }[] }>('/api/jobs');
      for (const { id } of jobs.items)
        await client()
          .delete(`/api/jobs/${id}/record`)
          .catch(() => {});
      await client().delete(`/api/models/${made.mid}`);
      // But for the id of the installation.
      await waitFor(() => objects().length === 1, {
        what: 'the objects to go',
        timeoutMs: 60_000,
      });
    });
  },
);

describeUnless(
  missingRoot() ?? missingPrograms('sshd') ?? missingNamespaces(),
  'API and workers that root starts without settings',
  () => {
    const names = readFileSync('/etc/passwd', 'utf8');
    const haveAccounts = /^windlass-(api|worker):/m.test(names);
    const { stack, sshd, client } = useRemoteStack(
      { start: startStack },
      { env: { API_USER: undefined, WORKER_USER: undefined } },
    );
    const uidsOf = (name: string) =>
      new Set(stack.pids().flatMap(entry => (entry.name === name ? [uidOf(entry.pid)] : [])));

    test.skipIf(haveAccounts)('are users that nobody else is', async () => {
      const ids = ['windlass-api', 'windlass-worker', 'postgres'].map(name => [...uidsOf(name)]);
      expect(ids.slice(0, 2)).toEqual([[1_900_000_184], [1_900_000_185]]);
      expect(ids[2]).not.toContain(0);
      expect(stack.log()).not.toContain('as root');
      const sid = await openSession(client, sshd);
      const { mid } = await makeModel(client);
      const table = await makeTable(client, { mid, aid: 'table', csv: 'a\n2\n1\n' });
      const { id } = await launchAsync(client, sid, 'head -c 9000000 /dev/zero');
      expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
      expect((await readOutput(client, id)).length).toBe(9_000_000);
      await stack.down();
      await stack.up();
      expect([...uidsOf('windlass-api')]).toEqual([1_900_000_184]);
      const { rows } = await client.get<{ rows: unknown[] }>(`${table}/rows?sort=a`);
      expect(rows).toEqual([[1], [2]]);
    });
  },
);
