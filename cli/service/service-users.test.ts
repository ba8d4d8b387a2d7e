import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  findDecoderUser,
  findPostgresUser,
  readSystemUsers,
} from '../../shared/process/system-users.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { makeTempDir } from '../../test/harness/temp-dir.ts';
import { prepareServiceUsers } from './service-users.ts';

const UID = 61_234;

describeUnless(missingRoot(), 'accounts of API and workers', () => {
  const directory = makeTempDir('service-users');
  afterAll(() => directory.remove());
  beforeAll(() => chmodSync(directory.path, 0o755));

  const told: string[] = [];
  const prepare = (given: string, dataDir = directory.path, WORKER_USER?: string) =>
    prepareServiceUsers(readConfig({ API_USER: given, WORKER_USER }), dataDir, line =>
      told.push(line),
    );

  test('shares the objects with no group of root, of the decoders or of the database', async () => {
    const groups = [0, findDecoderUser()?.gid, findPostgresUser()?.gid];
    for (const gid of groups.filter(gid => gid !== undefined))
      await expect(prepare(`${UID}:${gid}`)).rejects.toThrow(
        'is that of root, the database or the decoders',
      );
    // As `adduser --system` of Debian makes one: of the group that decoders have.
    const decoder = findDecoderUser();
    if (!decoder) return;
    const dataDir = join(directory.path, 'data');
    mkdirSync(dataDir, { mode: 0o755 });
    await prepare(`${UID}:${decoder.gid}`, dataDir).catch(() => {});
    const root = join(dataDir, 'objects');
    await new FileStore(root).put('uploads/u/p', Buffer.from('of somebody else'));
    const { uid, gid } = decoder;
    const as = { uid, gid, cwd: '/', stdio: 'ignore' } as const;
    expect(spawnSync('cat', [join(root, 'objects/uploads/u/p')], as).status).not.toBe(0);
  });

  test('the database is not that of the user of the decoders', async () => {
    const decoder = findDecoderUser();
    if (!decoder) return;
    const dataDir = join(directory.path, 'moved');
    mkdirSync(join(dataDir, 'postgres'), { recursive: true });
    chownSync(join(dataDir, 'postgres'), decoder.uid, decoder.gid);
    await expect(prepare(`${UID}:${UID}`, dataDir)).rejects.toThrow(
      `The embedded Postgres runs as ${decoder.name}, and so would the programs that read files of others.`,
    );
  });

  test('is refused where no process can have its numbers', async () => {
    for (const given of [`99999999999:${UID}`, `${UID}:99999999999`, `0:${UID}`])
      await expect(prepare(given)).rejects.toThrow(`API_USER: ${given} is no account`);
  });

  test('without settings and accounts they have numbers that nobody has, and a line says why not', async () => {
    const names = readSystemUsers().map(({ name }) => name);
    if (['windlass-api', 'windlass-worker'].some(name => names.includes(name))) return;
    const prepareAs = async (settings: Record<string, string>, dataDir = directory.path) => {
      told.length = 0;
      const { api, worker } = await prepareServiceUsers(readConfig(settings), dataDir, line =>
        told.push(line),
      );
      return [api?.uid, worker?.uid];
    };
    expect(await prepareAs({})).toEqual([1_900_000_184, 1_900_000_185]);
    expect(told).toEqual([]);
    expect(await prepareAs({ API_USER: 'root', WORKER_USER: 'root' })).toEqual([
      undefined,
      undefined,
    ]);
    expect(told).toEqual([]);
    expect((await prepareAs({ PORT: '81' }))[0]).toBeUndefined();
    expect(told[0]).toMatch(/^The API runs as root: .* may not listen on port 81\. Set PORT/);
    const used = join(directory.path, 'used-data');
    mkdirSync(join(used, 'objects/objects/uploads'), { recursive: true });
    expect(await prepareAs({}, used)).toEqual([undefined, undefined]);
    expect(told[0]).toBe(
      'The API runs as root: the objects that are stored here are those of root. API_USER=1900000184:1900000184 changes that; API_USER=root says that it is meant.',
    );
    const closed = join(directory.path, 'closed-data');
    mkdirSync(closed, { mode: 0o700 });
    expect(await prepareAs({}, closed)).toEqual([undefined, undefined]);
    expect(told).toEqual([
      expect.stringMatching(/^The API runs as root: API_USER: .* cannot use .*closed-data\./),
      expect.stringMatching(/^The workers run as root: WORKER_USER: .* cannot use .*closed-data\./),
    ]);
  });

  test('the workers are nobody who runs anything else, and can use what they need', async () => {
    const prepareWorker = (given: string) => prepare(`${UID}:${UID}`, directory.path, given);
    await expect(prepareWorker(`${UID}:${UID + 1}`)).rejects.toThrow('the API runs as');
    await expect(prepareWorker('0:0')).rejects.toThrow('WORKER_USER: 0:0 is no account');
    const decoder = findDecoderUser();
    if (decoder)
      await expect(prepareWorker(`${decoder.uid}:${UID + 1}`)).rejects.toThrow(
        'the database or the decoders run as',
      );
    const { TMPDIR } = process.env;
    process.env.TMPDIR = join(directory.path, 'closed');
    mkdirSync(process.env.TMPDIR, { mode: 0o755 });
    try {
      await expect(prepareWorker(`${UID + 1}:${UID + 1}`)).rejects.toThrow(
        `cannot use ${process.env.TMPDIR}`,
      );
    } finally {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    }
  });

  test('where no namespace can be made the workers stay root, and one line says so', async () => {
    const { PATH } = process.env;
    const programs = join(directory.path, 'programs');
    mkdirSync(programs, { mode: 0o755 });
    writeFileSync(
      join(programs, 'unshare'),
      '#!/bin/sh\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n',
      { mode: 0o755 },
    );
    process.env.PATH = `${programs}:${PATH}`;
    try {
      const users = await prepare(`${UID}:${UID}`, directory.path, `${UID + 1}:${UID + 1}`);
      expect(users).toMatchObject({ api: { uid: UID }, worker: undefined });
    } finally {
      process.env.PATH = PATH;
    }
    expect(told.at(-1)).toBe(
      `The workers run as root, not as ${UID + 1}:${UID + 1}: unshare: unshare failed: Operation not permitted`,
    );
  });
});
