import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '../../shared/settings/config.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTable } from '../harness/clients/tables.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  someBytes,
} from '../harness/clients/uploads.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { NEEDS_MOUNT } from '../harness/hosts/small-disk.ts';
import { startProgram } from '../harness/run-program.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const WINDLASS = 'dist/cli/main.js';

describeStack(missingPrograms('sshd'), 'a backup', form => {
  const { stack, client, sshd } = useRemoteStack(form, { alone: 'it is restored' });
  const place = makeTempDir('backup');
  const folder = join(place.path, 'monday');
  afterAll(() => place.remove());

  const start = (...args: string[]) =>
    startProgram({
      args: [WINDLASS, ...args],
      cwd: place.path,
      settings: { DATA_DIR: stack.dataDir },
    });
  const windlass = (...args: string[]) => start(...args).ended;
  /** A new, empty data directory, with the keys of the service. */
  function empty(): void {
    const old = `${stack.dataDir}-${readdirSync(join(stack.dataDir, '..')).length}`;
    renameSync(stack.dataDir, old);
    mkdirSync(stack.dataDir, { mode: 0o711 });
    copyFileSync(join(old, 'secrets.json'), join(stack.dataDir, 'secrets.json'));
  }
  const rowsOf = (mid: string) => client.get(`/api/models/${mid}/tables/day/rows?limit=1000`);
  /** A second one of a name would be a second run. */
  const runs = () => readFileSync(join(sshd.home, 'runs'), 'utf8');
  const report = async () => ({
    projects: await client.get('/api/projects'),
    hosts: await client.get('/api/hosts'),
    users: (await client.get<{ items: { storage: object }[] }>('/api/users')).items.map(
      ({ storage: _, ...user }) => user,
    ),
  });

  let sid: string;
  let mid: string;
  let uid: string;
  let printed: string;
  let before: { report: unknown; rows: unknown };
  let open: Job;
  const part = someBytes(300_000);

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    const lines = Array.from({ length: 1_000 }, (_, n) => `${n},${n * 0.1}`);
    const csv = ['n,x', ...lines, ''].join('\n');
    ({ mid } = await makeModel(client));
    await makeTable(client, { mid, aid: 'day', csv });
    const other = await makeModel(client);
    uid = await beginUpload(client, other.mid, ['a', 'b']);
    // A table of some size: its rows do not fit into one buffer.
    const sent = Array.from({ length: 300 }, (_, n) =>
      putPart(client, partPath(uid, 0, n), n === 0 ? part : someBytes(9)),
    );
    for (const { status } of await Promise.all(sent)) expect(status).toBe(200);
    const { id } = await launchAsync(client, sid, 'head -c 20000000 /dev/urandom; echo end >&2');
    printed = (await waitForEnd(client, id)).id;
    open = await launchAsync(
      client,
      sid,
      'echo open >>"$HOME/runs"; while [ ! -e "$HOME/go" ]; do sleep 0.1; done',
    );
    await waitFor(() => existsSync(join(sshd.home, 'runs')), { what: 'the open command to run' });
    before = { report: await report(), rows: await rowsOf(mid) };
  });

  test('is made while the service works, and checked by a common tool', async () => {
    let works = true;
    const work = async () => {
      for (let n = 0; works; n++) {
        await makeTable(client, { mid, aid: `later-${n}`, csv: 'a\n1\n' });
        await client.delete(`/api/models/${mid}/artifacts/later-${n}`).catch(() => {});
      }
    };
    const making = windlass('backup', folder).finally(() => {
      works = false;
    });
    const [made] = await Promise.all([making, work()]);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).toMatch(/monday: \d+ tables and \d+ objects, as they were at 2\S+Z\.$/m);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const stopped = start('backup', join(place.path, 'tuesday'));
    const began = () => readdirSync(place.path).length > 1;
    await waitFor(began, { what: 'another backup to begin', intervalMs: 10 });
    stopped.child.kill('SIGTERM');
    expect(await stopped.ended).toEqual({
      code: 1,
      stdout: '',
      stderr: 'windlass: The backup was not made: it was stopped.\n',
    });
    const { status } = spawnSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], {
      cwd: folder,
    });
    expect(status).toBe(0);
    expect(readdirSync(place.path)).toEqual(['monday']);
    expect((await windlass('backup', folder)).stderr).toContain('is there already.');
    const mistyped = join(place.path, 'no', 'data');
    const none = startProgram({
      args: [WINDLASS, 'backup', join(place.path, 'tuesday')],
      cwd: place.path,
      settings: { DATA_DIR: mistyped },
    });
    expect(await none.ended).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`There is no data directory ${mistyped}.`),
    });
    expect(readdirSync(place.path)).toEqual(['monday']);
  });

  test('links the objects of an older one, and is whole without it', async () => {
    const [first, second] = [join(place.path, 'first'), join(place.path, 'second')];
    expect(await windlass('backup', first)).toMatchObject({ code: 0, stderr: '' });
    await makeTable(client, { mid, aid: 'between', csv: 'a\n1\n' });
    const made = await windlass('backup', second, '--since', first, '--json');
    expect(made).toMatchObject({ code: 0, stderr: '' });
    const { objects, linked } = JSON.parse(made.stdout) as { objects: number; linked: number };
    expect(linked).toBeGreaterThan(0);
    expect(objects).toBeGreaterThan(linked);
    const inodes = (of: string) =>
      readdirSync(join(of, 'objects'), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => statSync(join(entry.parentPath, entry.name)).ino);
    const old = new Set(inodes(first));
    expect(inodes(second).filter(inode => old.has(inode))).toHaveLength(linked);

    rmSync(first, { recursive: true });
    const sums = ['--check', '--quiet', 'SHA256SUMS'];
    expect(spawnSync('sha256sum', sums, { cwd: second }).status).toBe(0);
    const data = join(place.path, 'data');
    mkdirSync(data, { mode: 0o711 });
    const restored = startProgram({
      args: [WINDLASS, 'restore', second, '--json'],
      cwd: place.path,
      settings: { DATA_DIR: data },
    });
    expect(await restored.ended).toMatchObject({ code: 0, stderr: '' });
    expect((await windlass('backup', first, '--since', data)).stderr).toContain('is no backup.');
    for (const made of [second, data]) rmSync(made, { recursive: true });
  });

  test('copies what it cannot link', async context => {
    const other = join(place.path, 'other');
    mkdirSync(other);
    const mount = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', other]);
    if (mount.status !== 0) return context.skip(NEEDS_MOUNT);
    try {
      const tuesday = join(other, 'tuesday');
      const made = await windlass('backup', tuesday, '--since', folder, '--json');
      expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { linked: 0 }]);
      const sums = ['--check', '--quiet', 'SHA256SUMS'];
      expect(spawnSync('sha256sum', sums, { cwd: tuesday }).status).toBe(0);
    } finally {
      spawnSync('umount', [other]);
      rmSync(other, { recursive: true });
    }
  });

  test('is made after a project was removed whose tables were sorted today', async () => {
    const store = await openObjectStore(readConfig(stack.environment));
    const sorted = await makeModel(client);
    await makeTable(client, { mid: sorted.mid, aid: 'day', csv: 'a\n2\n1\n' });
    await client.get(`/api/models/${sorted.mid}/tables/day/rows?sort=a`);
    const key = await firstKey(store, 'views/');
    await client.delete(`/api/projects/${sorted.pid}`);
    await waitFor(async () => !(await store.stat(key)), {
      what: 'the view to be removed',
      timeoutMs: 60_000,
    });
    const wednesday = join(place.path, 'wednesday');
    expect(await windlass('backup', wednesday)).toMatchObject({ code: 0, stderr: '' });
    rmSync(wednesday, { recursive: true });
  });

  test('that lacks objects names them, and leaves nothing unless it may go without', async () => {
    const store = await openObjectStore(readConfig(stack.environment));
    const database = openStackDatabase(stack);
    const [{ object: key }] = await database<[{ object: string }]>`
      select object from upload_parts where upload = ${uid} limit 1`;
    const bytes = await buffer(await store.get(key));
    await store.remove(key);
    const [{ object: table }] = await database<[{ object: string }]>`
      select object from artifacts where model = ${mid} and aid = 'day'`;
    await database.end();
    const tableBytes = await buffer(await store.get(table));
    await store.remove(table);
    try {
      const thursday = join(place.path, 'thursday');
      const { code, stdout, stderr } = await windlass('backup', thursday);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(
        /^windlass: The backup was not made: the object store lacks what the database refers to: .* \(.*\)\. .*--without-missing\.\n$/,
      );
      expect(stderr).toContain(`${key} (a part of upload ${uid})`);
      expect(stderr).toContain(`${table} (artifact day of model ${mid} in project `);
      expect(existsSync(thursday)).toBe(false);

      const made = await windlass('backup', thursday, '--without-missing');
      expect([made.code, made.stderr]).toEqual([3, '']);
      expect(made.stdout).toContain('The store lacks 2 more objects');
      const { missing } = JSON.parse(readFileSync(join(thursday, 'backup.json'), 'utf8'));
      expect(missing).toEqual([key, table].sort());
      rmSync(thursday, { recursive: true });
    } finally {
      await store.put(table, tableBytes);
      await store.put(key, bytes);
    }
    expect(readdirSync(place.path)).toEqual(['monday']);
  });

  test('for which there is no room says so, and leaves nothing', async context => {
    const small = join(place.path, 'small');
    mkdirSync(small);
    try {
      // The tables do not fit, then the objects.
      for (const size of ['64k', '2m']) {
        const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', small]);
        if (mount.status !== 0) return context.skip(NEEDS_MOUNT);
        expect(await windlass('backup', join(small, 'friday'))).toEqual({
          code: 1,
          stdout: '',
          stderr: 'windlass: The backup was not made: ENOSPC: no space left on device, write.\n',
        });
        expect(readdirSync(small)).toEqual([]);
        expect(spawnSync('umount', [small]).status).toBe(0);
      }
    } finally {
      spawnSync('umount', [small]);
      rmSync(small, { recursive: true });
    }
  });

  test('whose database becomes unreachable says so, and leaves nothing', async () => {
    const isCopying = () =>
      readdirSync(place.path).some(
        name => name.includes('.partial-') && existsSync(join(place.path, name, 'tables')),
      );
    for (const signal of ['SIGKILL', 'SIGINT'] as const) {
      const cut = start('backup', join(place.path, 'saturday'));
      await waitFor(isCopying, { what: 'the tables to be copied', intervalMs: 5 });
      const text = readFileSync(join(stack.dataDir, 'postgres', 'postmaster.pid'), 'utf8');
      process.kill(Number.parseInt(text, 10), signal);
      const { code, stderr } = await cut.ended;
      expect([code, stderr]).toEqual([
        1,
        'windlass: The backup was not made: the database cannot be reached.\n',
      ]);
      expect(readdirSync(place.path)).toEqual(['monday']);
      await waitFor(() => client.get('/api/projects').then(Boolean, () => false), {
        what: 'the database to be back',
        timeoutMs: 30_000,
      });
    }
  });

  test('goes into an empty installation alone', async () => {
    writeFileSync(join(sshd.home, 'go'), '');
    await waitForEnd(client, open.id);
    const bytes = readFileSync(join(folder, 'SHA256SUMS'));
    expect(bytes.length).toBeGreaterThan(0);
    await stack.down();
    const nowhere = startProgram({
      args: [WINDLASS, 'backup', join(place.path, 'tuesday')],
      cwd: place.path,
      settings: {
        DATA_DIR: stack.dataDir,
        DATABASE_URL: 'postgres://nobody@127.0.0.1:9/nowhere',
      },
    });
    expect(await nowhere.ended).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^windlass: The backup was not made: .+\n$/),
    });
    const full = await windlass('restore', folder);
    expect(full).toMatchObject({ code: 1, stdout: '' });
    expect(full.stderr).toContain('The database is not empty: it has users, projects or jobs.');
  });

  test('that is not whole restores nothing', async () => {
    empty();
    const list = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
    const object = list.find(line => line.includes('  objects/'))?.slice(66) ?? '';
    const faults: [string, () => void][] = [
      [`${object} was changed`, () => appendFileSync(join(folder, object), 'x')],
      [`${object} was changed`, () => truncateSync(join(folder, object), 1)],
      [`${object} is missing`, () => rmSync(join(folder, object))],
      [
        'are in its list',
        () =>
          writeFileSync(
            join(folder, 'SHA256SUMS'),
            `${list.filter(line => !line.endsWith(object)).join('\n')}\n`,
          ),
      ],
      ['SHA256SUMS is damaged', () => writeFileSync(join(folder, 'SHA256SUMS'), 'nothing\n')],
    ];
    const kept = readFileSync(join(folder, object));
    for (const [problem, damage] of faults) {
      damage();
      const { code, stderr } = await windlass('restore', folder);
      expect(code).toBe(1);
      expect(stderr).toContain(problem);
      writeFileSync(join(folder, object), kept);
      writeFileSync(join(folder, 'SHA256SUMS'), `${list.join('\n')}\n`);
    }
    expect((await windlass('restore', place.path)).stderr).toContain('is no backup.');
    expect(existsSync(join(stack.dataDir, 'objects'))).toBe(false);
  });

  test('brings back what there was, and runs nothing again', async () => {
    const ran = runs();
    const restored = await windlass('restore', folder);
    expect(restored).toMatchObject({ code: 0, stderr: '' });
    expect(restored.stdout).toContain('1 job that was open then has ended as outcome_unknown');
    await stack.up();
    expect(await report()).toEqual(before.report);
    expect(await rowsOf(mid)).toEqual(before.rows);
    expect((await readOutput(client, printed)).length).toBe(20_000_000);
    const job = await client.get<Job>(`/api/jobs/${open.id}`);
    expect(job).toMatchObject({ state: 'failed', error: { code: 'outcome_unknown' } });
    await expectProblem(
      await client.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, command: 'true' }),
      }),
      ...([404, 'session_not_found'] as const),
    );
    // What had begun goes on: the upload, the numbers of the audit.
    expect((await putPart(client, partPath(uid, 1, 0), part)).status).toBe(200);
    const again = await openSession(client, sshd);
    const { output } = await client.post<{ output: string }>('/api/remotes/launch', {
      sid: again,
      command: 'echo on',
    });
    expect(output).toBe('on\n');
    expect(runs()).toBe(ran);
    expect((await windlass('audit', 'verify')).stdout).toContain('The audit is whole');
    const [told, ...others] = (
      await client.get<{ items: { target: string; user: null }[] }>('/api/audit?action=restore')
    ).items;
    expect(others).toEqual([]);
    expect(told).toMatchObject({ user: null, target: expect.stringMatching(/^2\S+Z$/) });
    // What users store is counted anew.
    const stored = () =>
      client.get<{ storage: { bytes: number } }>('/api/users/-').then(user => user.storage.bytes);
    await waitFor(async () => (await stored()) > 20_000_000, {
      what: 'what is stored to be counted',
      timeoutMs: 60_000,
    });
  });
});

async function firstKey(store: ObjectStore, prefix: string): Promise<string> {
  for await (const { key } of store.list(prefix)) return key;
  throw new Error(`There is no object ${prefix}….`);
}
