import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import {
  findDecoderUser,
  findPostgresUser,
  readSystemUsers,
  type SystemUser,
} from '../../shared/process/system-users.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingRoot, skipTest } from '../../test/harness/skip.ts';
import { ACCOUNTS } from './own-account.ts';
import { prepareServiceUsers } from './service-users.ts';

const UID = 61_234;

function requireDecoder(context: TestContext): SystemUser {
  return (
    findDecoderUser() ??
    skipTest(context, { reason: 'needs an account for the decoders', obtainable: false })
  );
}

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
  });

  test('the database is not that of the user of the decoders', async context => {
    const decoder = requireDecoder(context);
    const dataDir = join(directory.path, 'moved');
    mkdirSync(join(dataDir, 'postgres'), { recursive: true });
    chownSync(join(dataDir, 'postgres'), decoder.uid, decoder.gid);
    await expect(prepare(`${UID}:${UID}`, dataDir)).rejects.toThrow(
      `The embedded Postgres and the file decoders would run as the same user, ${decoder.name}.`,
    );
  });

  test('is refused where no process can have its numbers', async () => {
    for (const given of [`99999999999:${UID}`, `${UID}:99999999999`, `0:${UID}`])
      await expect(prepare(given)).rejects.toThrow(`API_USER: ${given} is no account`);
  });

  test('without settings and accounts they have numbers that nobody has, and a line says why not', async context => {
    const names = readSystemUsers().map(({ name }) => name);
    if (Object.values(ACCOUNTS).some(name => names.includes(name)))
      skipTest(context, { reason: 'has accounts of Windlass already', obtainable: false });
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
      'The API runs as root: the stored objects belong to root. Set API_USER=1900000184:1900000184 to hand them over, or API_USER=root to go on as root.',
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

  test('the workers are not the user of the decoders', async context => {
    const { uid } = requireDecoder(context);
    await expect(prepare(`${UID}:${UID}`, directory.path, `${uid}:${UID + 1}`)).rejects.toThrow(
      'the database or the decoders run as',
    );
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
