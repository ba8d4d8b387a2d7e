import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import * as Minio from 'minio';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { MARKER } from '../../shared/installation/store-marker.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { makeTable } from '../harness/clients/tables.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  someBytes,
} from '../harness/clients/uploads.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { startProgram } from '../harness/run-program.ts';
import { missingMinio, startMinio } from '../harness/servers/minio.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';

describeStack(missingPrograms('sshd') ?? missingMinio(), 'a backup of objects in S3', form => {
  const minio = useStarted(() => startMinio());
  const settings = () => ({
    S3_ENDPOINT: minio.endpoint,
    S3_BUCKET: 'windlass-backed-up',
    S3_ACCESS_KEY: minio.accessKey,
    S3_SECRET_KEY: minio.secretKey,
  });
  const stack = useStarted(() => form.start({ env: settings(), alone: 'it is restored' }));
  const sshd = useStarted(() => startTestSshd());
  const place = makeTempDir('backup-s3');
  afterAll(() => place.remove());
  const folder = join(place.path, 'monday');
  const windlass = (...args: string[]) =>
    startProgram({
      args: ['dist/cli/main.js', ...args],
      cwd: place.path,
      settings: { ...settings(), DATA_DIR: stack.dataDir },
    }).ended;
  const store = () => openObjectStore(readConfig({ ...settings(), DATA_DIR: stack.dataDir }));
  const listKeys = async () => {
    const keys: string[] = [];
    for await (const { key } of (await store()).list('')) keys.push(key);
    return keys.toSorted();
  };

  const removeBucket = () => {
    const { host: endPoint, port, accessKey, secretKey } = minio;
    const server = new Minio.Client({ endPoint, port, accessKey, secretKey, useSSL: false });
    return server.removeBucket(settings().S3_BUCKET);
  };

  let client: Client;
  let mid: string;
  let job: string;
  const rows = () => client.get(`/api/models/${mid}/tables/day/rows?limit=1000`);
  const fileOf = async () => {
    const answer = await client.fetch(`/api/models/${mid}/files/bytes`);
    return Buffer.from(await answer.arrayBuffer());
  };
  const bytes = someBytes(20_000_000);

  beforeAll(async () => {
    client = connectClient(stack);
    await addHost(client, sshd);
    ({ mid } = await makeModel(client));
    const lines = Array.from({ length: 1_000 }, (_, n) => `${n},${n * 0.1}`);
    await makeTable(client, { mid, aid: 'day', csv: ['n,x', ...lines, ''].join('\n') });
    const upload = await beginUpload(client, mid, ['bytes']);
    for (const [n, start] of [0, 8_000_000, 16_000_000].entries())
      await putPart(client, partPath(upload, 0, n), bytes.subarray(start, start + 8_000_000));
    const finished = await client.post<{ job: string }>(`/api/uploads/${upload}/finished`, {
      uploaded: [3],
    });
    await waitForEnd(client, finished.job);
    const sid = await openSession(client, sshd);
    const launched = await launchAsync(client, sid, 'head -c 12000000 /dev/zero');
    job = (await waitForEnd(client, launched.id)).id;
  });

  test('is made while the service works, restored into a bucket that is not there, and whole', async () => {
    const before = { rows: await rows(), keys: await listKeys() };
    expect(before.keys.length).toBeGreaterThan(2);
    expect(await windlass('backup', folder, '--json')).toMatchObject({ code: 0, stderr: '' });
    const sums = ['--check', '--quiet', 'SHA256SUMS'];
    expect(spawnSync('sha256sum', sums, { cwd: folder }).status).toBe(0);

    await stack.down();
    const old = `${stack.dataDir}-before`;
    renameSync(stack.dataDir, old);
    mkdirSync(stack.dataDir, { mode: 0o711 });
    copyFileSync(join(old, 'secrets.json'), join(stack.dataDir, 'secrets.json'));
    const objects = await store();
    for (const key of before.keys) await objects.remove(key);
    expect(await listKeys()).toEqual([]);

    await objects.put(MARKER, Buffer.from('another'));
    const refused = await windlass('restore', folder);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('The object store is that of another installation'),
    ]);
    expect(await listKeys()).toEqual([MARKER]);
    await objects.remove(MARKER);

    const foreign = 'artifacts/of-another/installation';
    await objects.put(foreign, Buffer.from('theirs'));
    const mixed = await windlass('restore', folder);
    expect([mixed.code, mixed.stderr]).toEqual([
      1,
      expect.stringContaining('holds objects that are not in the backup'),
    ]);
    expect(await listKeys()).toEqual([foreign]);
    await objects.remove(foreign);
    await removeBucket();

    const restored = await windlass('restore', folder, '--json');
    expect({ code: restored.code, stderr: restored.stderr }).toEqual({ code: 0, stderr: '' });
    expect(before.keys).toEqual(expect.arrayContaining(await listKeys()));
    await stack.up();
    expect(await rows()).toEqual(before.rows);
    expect((await fileOf()).equals(bytes)).toBe(true);
    expect((await readOutput(client, job)).length).toBe(12_000_000);
    expect((await windlass('audit', 'verify')).stdout).toContain('The audit is whole');
  });
});
