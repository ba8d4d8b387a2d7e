import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findDecoderUser, findPostgresUser } from '../../shared/process/system-users.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { makeTempDir } from '../../test/harness/temp-dir.ts';
import { prepareApiUser } from './api-user.ts';

const UID = 61_234;

describeUnless(missingRoot(), 'API_USER', () => {
  const directory = makeTempDir('api-user');
  afterAll(() => directory.remove());
  beforeAll(() => chmodSync(directory.path, 0o755));

  const prepare = (given: string, dataDir = directory.path) =>
    prepareApiUser(readConfig({ API_USER: given }), dataDir);

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

  test('is refused where no process can have its numbers', async () => {
    for (const given of [`99999999999:${UID}`, `${UID}:99999999999`, `0:${UID}`])
      await expect(prepare(given)).rejects.toThrow(`API_USER: ${given} is no account`);
  });
});
