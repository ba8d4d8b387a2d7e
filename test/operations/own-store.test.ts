import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { findForeignStore, MARKER } from '../../shared/installation/store-marker.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTable, utf8 } from '../harness/clients/tables.ts';
import { finishUpload, makeModel, partPath, putPart } from '../harness/clients/uploads.ts';
import { startTestPostgres, type TestPostgres } from '../harness/databases/postgres-server.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeUnless } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(undefined, 'an object store that is not that of the database', form => {
  const { stack, client } = useStack(form, { alone: 'its objects are moved away' });
  let mid: string;
  const objects = () => join(stack.dataDir, 'objects');
  const marker = () => join(objects(), 'objects/installation');
  const readObjectsCheck = async () => {
    const answer = await fetch(`${stack.url}/readyz`);
    const { checks } = (await answer.json()) as { checks: { objects: string | null } };
    return [answer.status, checks.objects];
  };
  const releasesOf = (job: string) =>
    stack
      .log()
      .split('\n')
      .filter(line => line.includes(job) && line.includes('the job is released'));
  const isOver = async (job: string) =>
    (await client.get<{ finished: string | null }>(`/api/jobs/${job}`)).finished !== null;
  const start = () => {
    const { DATA_DIR = '', PORT = '', HOST = '' } = stack.environment;
    const settings = { DATA_DIR, PORT, HOST };
    return startProgram({ args: ['dist/cli/main.js', 'up'], settings, cwd: DATA_DIR }).ended;
  };

  test('is told by /readyz while its disk is not mounted', async () => {
    ({ mid } = await makeModel(client));
    await makeTable(client, { mid, aid: 'day', csv: 'n\n1\n' });
    expect(await readObjectsCheck()).toEqual([200, null]);
    renameSync(objects(), `${objects()}-away`);
    const missing = [503, expect.stringMatching(/objects that are not there\. Mount its disk/)];
    expect(await readObjectsCheck()).toEqual(missing);
    // It stays so, whatever is stored in the wrong place meanwhile.
    await makeTable(client, { mid, aid: 'next', csv: 'n\n2\n' });
    expect(await readObjectsCheck()).toEqual(missing);
    rmSync(objects(), { recursive: true, force: true });
    renameSync(`${objects()}-away`, objects());
    expect(await readObjectsCheck()).toEqual([200, null]);
  });

  test('lets a parse wait while its disk is not mounted', async () => {
    for (const parser of ['csv', 'blob']) {
      const begun = { mid, input: false, parser, aids: [`waits as ${parser}`] };
      const { id: uid } = await client.post<{ id: string }>('/api/uploads', begun);
      await putPart(client, partPath(uid, 0, 0), utf8('n\n3\n'));
      renameSync(objects(), `${objects()}-away`);
      const { job } = (await (await finishUpload(client, uid, [1])).json()) as { job: string };
      await waitFor(async () => releasesOf(job).length > 1 || (await isOver(job)), {
        what: 'another try',
        timeoutMs: 30_000,
      });
      expect(await isOver(job)).toBe(false);
      expect(releasesOf(job)[0]).toContain('The object store is not that of this database');
      rmSync(objects(), { recursive: true, force: true });
      renameSync(`${objects()}-away`, objects());
      expect(await waitForEnd(client, job, 60_000)).toMatchObject({ state: 'succeeded' });
    }
    expect(stack.log()).not.toContain('lost or changed a part');
  });

  test('is an outage for what is read, and lets a view wait', async () => {
    const csv = `n\n${Array.from({ length: 100 }, (_, n) => n).join('\n')}\n`;
    const table = await makeTable(client, { mid, aid: 'read', csv });
    const reads = [`${table}/rows?limit=3`, `/api/models/${mid}/files/note`];
    const begun = { mid, input: false, parser: 'blob', aids: ['note'] };
    const { id: uid } = await client.post<{ id: string }>('/api/uploads', begun);
    await putPart(client, partPath(uid, 0, 0), utf8('kept'));
    const { job } = (await (await finishUpload(client, uid, [1])).json()) as { job: string };
    await waitForEnd(client, job);
    renameSync(objects(), `${objects()}-away`);
    for (const path of reads) {
      const { detail } = await expectProblem(await client.fetch(path), 503, 'unavailable');
      expect(detail).toContain('The object store is not that of this database');
    }
    const sorted = await client.fetch(`${table}/rows?sort=-n`, { headers: { Prefer: 'wait=0' } });
    const view = (await sorted.json()) as { id: string };
    await waitFor(async () => releasesOf(view.id).length > 0 || (await isOver(view.id)), {
      what: 'the release of the view',
      timeoutMs: 30_000,
    });
    rmSync(objects(), { recursive: true, force: true });
    renameSync(`${objects()}-away`, objects());
    expect(await waitForEnd(client, view.id, 60_000)).toMatchObject({ state: 'succeeded' });
    for (const path of reads) expect((await client.fetch(path)).status).toBe(200);
  });

  test('is told by /readyz where another installation uses it', async () => {
    renameSync(marker(), `${marker()}-kept`);
    writeFileSync(marker(), 'another');
    expect(await readObjectsCheck()).toEqual([
      503,
      expect.stringContaining('The object store is that of another installation'),
    ]);
    renameSync(`${marker()}-kept`, marker());
  });

  test('ends the start, which says what to do', async () => {
    await stack.down();
    renameSync(objects(), `${objects()}-away`);
    const unmounted = await start();
    expect(unmounted.code).toBe(1);
    expect(unmounted.stderr).toMatch(/refers to objects that are not there\. Mount its disk/);

    rmSync(objects(), { recursive: true, force: true });
    writeFileSync(objects(), 'no folder');
    const unusable = await start();
    expect(unusable.code).toBe(1);
    expect(unusable.stderr).toMatch(
      /^windlass: .*[Tt]he folder of the object store cannot be used \(E[A-Z]+\)\..*objects\.\n$/,
    );

    rmSync(objects());
    renameSync(`${objects()}-away`, objects());
    writeFileSync(marker(), 'another');
    const shared = await start();
    expect(shared.code).toBe(1);
    expect(shared.stderr).toMatch(
      /that of another installation.* Correct S3_BUCKET, DATA_DIR or DATABASE_URL/,
    );
  });

  test('is not that of a new database where it holds objects', async () => {
    const folder = join(stack.dataDir, 'new');
    mkdirSync(join(folder, 'objects/objects/output/job'), { recursive: true });
    writeFileSync(join(folder, 'objects/objects/output/job/part'), 'printed');
    chmodSync(folder, 0o755);
    const { HOST = '' } = stack.environment;
    const settings = { DATA_DIR: folder, PORT: String(await findFreePort()), HOST };
    const program = { args: ['dist/cli/main.js', 'up'], settings, cwd: stack.dataDir };
    const { code, stderr } = await startProgram(program).ended;
    expect(stderr).toContain('The object store holds objects, and the database is new.');
    expect(code).toBe(1);
  });

  test('is its own where a release without markers used it', async () => {
    rmSync(marker());
    await stack.up();
    expect(await readObjectsCheck()).toEqual([200, null]);
    // Found by itself alone, without any other object.
    await stack.down();
    for (const folder of ['artifacts', 'uploads', 'output'])
      rmSync(join(objects(), 'objects', folder), { recursive: true, force: true });
    await stack.up();
    expect(await readObjectsCheck()).toEqual([200, null]);
    // What is lost is so for good: nobody is told to ask again.
    const lost = await client.fetch(`/api/models/${mid}/tables/day/rows`);
    const { detail } = await expectProblem(lost, 404, 'not_found');
    expect(detail).toContain('no longer kept');
  });
});

describeUnless(undefined, 'a database that has used a store, and refers to no object', () => {
  const place = makeTempDir('stores');
  let server: TestPostgres;
  let database: Database;
  beforeAll(async () => {
    server = await startTestPostgres();
    database = openDatabase(await server.createMigrated('used'), { max: 1 });
  });
  afterAll(async () => {
    await database?.close();
    await server?.stop();
    place.remove();
  });
  const open = (name: string) => openObjectStore(readConfig({ DATA_DIR: join(place.path, name) }));

  test('takes no other one that is empty, unless that has its id', async () => {
    const { db } = database;
    expect(await findForeignStore(db, await open('first'))).toBeUndefined();
    const other = await open('other');
    const foreign = await findForeignStore(db, other);
    expect(foreign?.problem).toContain('is not the one that this database has used');
    expect(await other.stat(MARKER)).toBeUndefined();
    const [, id = ''] = /store the text (\S+) as/.exec(foreign?.hint ?? '') ?? [];
    await other.put(MARKER, Buffer.from(id));
    expect(await findForeignStore(db, await open('other'))).toBeUndefined();
    expect(await findForeignStore(db, await open('first'))).toBeUndefined();
  });
});
